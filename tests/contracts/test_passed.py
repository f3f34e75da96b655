"""The count of modules that a question passes through sees what runs, once, and nothing else."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

from bursar.core.noise.law import from_units, to_units

TOOL = Path(__file__).parents[2] / "tools" / "passed.py"


def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("passed", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_modules_are_counted_by_their_functions_that_run() -> None:
    passed = tool().passed
    assert passed(lambda: [from_units(to_units(0.5)) for _ in range(3)]) == {
        "core/noise/law.py": {"from_units", "to_units"}
    }
    assert passed(lambda: sorted([2, 1])) == {}

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


CEILINGS = {"question": 98, "repeated": 12, "explain": 58, "batch": 113, "synthesize": 81, "bursar budget": 65}
"""Most modules on the way of each kind, one or two above what there are.

Whoever wants to know how a question is answered opens these files. So a ceiling is raised only for a file that the
question is about, and not for one that says that it is not concerned: a step of spelling names the syntax that it looks
for, a proposer its `Scope`, and a section of a config is read where it stands.
"""


def test_no_kind_of_question_passes_through_more_modules() -> None:
    counts = {name: len(modules) for name, modules in tool().counted()}
    assert counts.keys() == CEILINGS.keys()
    assert {name: count for name, count in counts.items() if count > CEILINGS[name]} == {}

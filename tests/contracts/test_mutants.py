"""Every planted bug still has its place in the source, and tests that are there: `make soak` runs them all."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

TOOL = Path(__file__).parents[2] / "tools" / "mutants.py"


def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mutants", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its dataclasses look for their own names
    spec.loader.exec_module(module)
    return module


def test_every_mutant_can_be_planted_and_has_tests() -> None:
    mutants = tool()
    assert mutants.moved() == []
    assert len({mutant.name for mutant in mutants.MUTANTS}) == len(mutants.MUTANTS) > 45
    assert all(mutant.tests and mutant.old != mutant.new for mutant in mutants.MUTANTS)


def test_a_planted_file_is_still_python() -> None:
    mutants = tool()
    for mutant in mutants.MUTANTS:
        text = (mutants.SOURCE / mutant.file).read_text(encoding="utf-8")
        compile(mutant.planted(text), mutant.file, "exec")


def test_a_place_that_has_moved_is_found() -> None:
    mutants = tool()
    gone = replace(mutants.MUTANTS[0], old="a text that no file has", tests=("tests/no_such_test.py",))
    assert len(mutants.moved([gone])) == 2

"""A verb of the kernel is open to offers only with an enumeration of its law and with record-play."""

from __future__ import annotations

import ast
import inspect
import textwrap
from pathlib import Path
from typing import NoReturn, get_type_hints

import pytest

from bursar.core.kernel import Kernel
from bursar.planner.grant import Grant, Verbs
from harness.player import Player, Run, watched
from harness.questions import KINDS

TESTS = Path(__file__).resolve().parents[1]

DOORS = {"measure": {"measure"}, "refine": {"refine"}, "above": {"open", "test"}, "select": {"select"}}
"""The doors of the kernel that each open verb goes through."""

SCENES = {"measure": "count", "refine": "refined", "above": "tested", "select": "chosen"}
"""A kind of scene that plays it."""

OWNERS = {"discover": ("enumeration/test_discovery_exact.py", "record_play/test_open_keys_played.py")}
"""Doors that no offer goes through, and what enumerates and plays each."""

SILENT = (NoReturn, type(None))
"""What verbs return that tell nothing about the data."""

VERBS = {name for name in vars(Verbs) if not name.startswith("_")}
OPEN = {name for name in VERBS if get_type_hints(getattr(Grant, name))["return"] not in SILENT}


def doors_called(verb: str) -> set[str]:
    """The methods of the kernel that draw noise, which a verb of a grant calls."""
    named = {node.attr for node in ast.walk(_method(Grant, verb)) if isinstance(node, ast.Attribute)}
    return named & drawing_doors()


def drawing_doors() -> set[str]:
    """The public methods of the kernel in which noise is drawn."""
    return {
        name
        for name, value in vars(Kernel).items()
        if not name.startswith("_") and callable(value) and "_randomness" in ast.dump(_method(Kernel, name))
    }


def _method(home: type, name: str) -> ast.AST:
    """The function behind a method, wherever it is written: verbs of the kernel are in its extensions too."""
    return ast.parse(textwrap.dedent(inspect.getsource(getattr(home, name))))


def test_the_tables_name_every_open_verb_and_every_door() -> None:
    assert set(DOORS) == set(SCENES) == OPEN
    assert {"measure", "refine", "above", "select"} <= VERBS
    assert set().union(*DOORS.values(), OWNERS) == drawing_doors()
    assert not set(OWNERS) & {door for verb in OPEN for door in doors_called(verb)}
    assert all((TESTS / test).is_file() for tests in OWNERS.values() for test in tests)


@pytest.mark.parametrize("verb", sorted(OPEN))
def test_an_open_verb_has_its_tests(verb: str) -> None:
    assert doors_called(verb) == DOORS[verb]
    for kind in ("exact", "twins"):
        assert (TESTS / "enumeration" / f"test_{verb}_{kind}.py").is_file()
    assert SCENES[verb] in KINDS
    played = vars(watched(Kernel, Player(Run(), "", lambda strategy: None)))
    assert DOORS[verb] <= set(played)

"""The picture of the tree shows the tree, and nothing in the trusted core reaches across its border."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))

import architecture  # noqa: E402


def test_the_picture_shows_the_tree() -> None:
    assert architecture.check() == []


def test_a_room_that_is_not_drawn_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(architecture, "BOXES", architecture.BOXES[1:])
    assert "sql/ is in the tree, not in the picture" in architecture.check()


def test_an_import_across_the_border_is_found() -> None:
    good = "from bursar.core.domain import Domain\nfrom bursar.errors import BursarError\nfrom numpy import ndarray\n"
    assert architecture.crossings({"core/kernel.py": good}) == []
    assert len(architecture.crossings({"core/kernel.py": good + "from bursar.planner.offer import Offer\n"})) == 1

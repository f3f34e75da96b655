"""The SQL reference is made from the allow-list: it is fresh, and leaves nothing out."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from sqlglot import exp

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))

import sql_reference  # noqa: E402

from bursar.compile import compile as compile_query  # noqa: E402
from bursar.sql import parse, syntax  # noqa: E402


def test_the_page_is_fresh() -> None:
    page = sql_reference.PAGE.read_text(encoding="utf-8")
    assert page == sql_reference.page(), "python tools/sql_reference.py"


def test_the_page_has_every_construct_and_every_reason() -> None:
    assert sql_reference.missing() == [], "add an example to tools/sql_examples.sql"


def test_a_construct_without_an_example_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(syntax.ALLOWED, exp.Hex, frozenset({"this"}))
    assert sql_reference.missing() == ["Hex", "Hex.this"]


def test_a_reason_without_an_example_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syntax, "_REASONS", (*syntax._REASONS, ((exp.Pivot,), "PIVOT is not available")))
    assert sql_reference.missing() == ["PIVOT is not available"]


def test_what_no_question_gets_to_is_on_the_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    excused = list(sql_reference.UNREACHABLE)
    monkeypatch.setattr(sql_reference, "UNREACHABLE", {})
    assert sql_reference.missing() == excused


def test_what_is_offered_instead_is_accepted() -> None:
    config = sql_reference._demo()
    rewrites = [
        example.refusal.rewrite
        for section in sql_reference.sections()
        for example in section.examples
        if example.refusal is not None and example.refusal.rewrite
    ]
    assert len(rewrites) > 15
    for rewrite in rewrites:
        assert compile_query(parse(rewrite), config.domain, config.table).outputs

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
from harness.constructs import UNLIKE, seeds  # noqa: E402


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


def test_every_construct_of_the_page_is_compared_with_duckdb() -> None:
    """Each question of the page is one that the generator of test_every_construct begins with, and so is each node."""
    begun = {seed.text for seed in seeds()}
    shown = [each.sql for section in sql_reference.sections() for each in section.examples if each.refusal is None]
    left_out = [sql for sql in shown if sql not in begun and not any(part in sql for part in UNLIKE)]
    assert left_out == []
    assert all(any(part in sql for sql in shown) for part in UNLIKE), "UNLIKE names what is not on the page"
    for title, text in (("One number of each person", sql_reference.PEOPLE), ("Joined tables", sql_reference.JOINED)):
        assert sum(seed.section == title for seed in seeds()) == text.count(";\n")
    nodes = {kind for seed in seeds() for kind, _ in sql_reference._nodes(seed.text)}
    unseen = {kind.__name__ for kind in syntax.ALLOWED} - {kind.__name__ for kind in nodes}
    assert unseen <= set(sql_reference.UNREACHABLE)


def test_a_construct_that_is_not_compared_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tuple(seed for seed in seeds() if "STDDEV" not in seed.text)
    monkeypatch.setattr(sys.modules[__name__], "seeds", lambda: kept)
    with pytest.raises(AssertionError, match="STDDEV"):
        test_every_construct_of_the_page_is_compared_with_duckdb()


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

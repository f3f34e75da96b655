"""Every construct that is accepted answers what DuckDB answers: generated rows with NULLs, unicode and empty groups."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from bursar.sql.tokens import questions_of
from harness.cases import every
from harness.exactly import Rows, empty

FIXTURES = Path(__file__).parents[1] / "fixtures"
SEEDS = (0, 1, 2)


@cache
def rows(seed: int) -> Rows:
    return Rows(seed, number=(40, 7, 300)[seed])


def spellings() -> list[str]:
    return questions_of((FIXTURES / "spellings.sql").read_text(encoding="utf-8"))


def check(text: str, data: Rows) -> None:
    """Every line of DuckDB's is one of ours, and what we have beside them is empty."""
    names, ours = data.ours(text)
    order = [data.columns(text).index(name) for name in names]
    theirs = [tuple(line[place] for place in order) for line in data.theirs(text)]
    more = Counter(ours) - Counter(theirs)
    less = Counter(theirs) - Counter(ours)
    keys = len(names) - _numbers(names, text, data)
    less_full = {line for line in less if not empty(line, keys)}
    assert not less_full, f"missing: {less_full}; instead: {more}"
    assert all(empty(line, keys) for line in more), f"too many: {more}; missing: {less}"


def _numbers(names: list[str], text: str, data: Rows) -> int:
    from bursar.compile import compile
    from bursar.sql import parse
    from harness.exactly import PEOPLE

    return len(compile(parse(text), PEOPLE, "people").outputs)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", SEEDS)
@every("text", spellings, nth=3)
def test_every_spelling_means_what_it_says(seed: int, text: str) -> None:
    check(text, rows(seed))


def test_a_wrong_answer_is_found() -> None:
    """The twin: another question's answer does not pass for this one's."""
    data = rows(0)
    text = "SELECT upper(region) AS r, COUNT(*) AS n FROM people GROUP BY 1"
    data.ours = lambda _: Rows.ours(data, "SELECT lower(region) AS r, COUNT(*) AS n FROM people GROUP BY 1")  # type: ignore[method-assign]
    with pytest.raises(AssertionError):
        check(text, data)
    del data.ours

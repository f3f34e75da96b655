"""Every construct of the SQL reference answers what DuckDB answers, over questions and tables that are drawn anew."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bursar.estimation.association import Association
from bursar.estimation.derived import Variance
from harness.cases import every, examples
from harness.constructs import Compared, Seed, close_worlds, compared, other_questions, seeds

DRAWN, DRAWN_FOR_LONG = 12, 120
"""How many questions are made of each seed, at most."""


@pytest.fixture(scope="module", autouse=True)
def tables() -> Iterator[None]:
    """What the tests of this file share is gone behind them."""
    yield
    close_worlds()


def outcomes(seed: Seed, number: int, table: int) -> Iterator[Compared]:
    for place, question in enumerate(other_questions(seed, number)):
        yield compared(question, (table + place) % 5)


def check(seed: Seed, number: int, table: int) -> None:
    first, *others = outcomes(seed, number, table)
    assert not first.refused, f"the page says that this is answered: {first.refused}"
    assert not first.unread, f"say it in the words of DuckDB, in SPOKEN: {first.unread}"
    different = [f"{each.text}\n      {each.differs}" for each in (first, *others) if each.differs]
    assert not different, "\n".join(different[:3])


@pytest.mark.hypothesis
@every("seed", seeds, label=lambda seed: f"[{seed.section}] {seed.text}", nth=2)
def test_every_construct_means_what_duckdb_answers(seed: Seed) -> None:
    check(seed, examples(DRAWN), table=0)


@pytest.mark.soak
@pytest.mark.parametrize("table", range(5, 15, 5))
@every("seed", seeds, label=lambda seed: f"[{seed.section}] {seed.text}")
def test_many_more_questions_mean_what_duckdb_answers(seed: Seed, table: int) -> None:
    check(seed, DRAWN_FOR_LONG, table)


def found(text: str) -> str:
    return compared(next(seed for seed in seeds() if text in seed.text), 1).differs


def test_a_wrong_variance_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: that of the population for that of the sample."""
    text = "SELECT VARIANCE(hours) AS v, VAR_SAMP(hours)"
    assert not found(text)
    monkeypatch.setattr(Variance, "_shown", lambda self, spread, rows: spread**0.5 if self.root else spread)
    assert found(text)


def test_a_covariance_that_takes_columns_as_they_lie_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: the line of y by x is not that of x by y."""
    text = "SELECT COVAR_POP(hours, age) AS p"
    assert not found(text)
    made = Association._made
    monkeypatch.setattr(Association, "_made", lambda self, n, c, x, y, a, b: made(self, n, c, y, x, b, a))
    assert found(text)

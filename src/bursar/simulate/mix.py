"""What is expected to be asked: a mix of scripts, one per analyst, or the questions of a log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import Protocol

from bursar.analysts.scheduler import RoundRobin, Turns
from bursar.errors import AnalystError, QueryError
from bursar.synthetic.plan.task import PREFIX
from bursar.sql.script import questions_of


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One question, and who asks it."""

    analyst: str
    sql: str


class Line(Protocol):
    """What is read of a line of the log."""

    @property
    def analyst(self) -> str: ...

    @property
    def purpose(self) -> str: ...

    @property
    def rows(self) -> int: ...


def expected(scripts: Mapping[str, Sequence[str]], often: Mapping[str, Fraction] | None = None) -> list[Asked]:
    """Each analyst's questions in their order, merged: somebody with rate 3 asks three times as often as with rate 1,
    until nothing is left to ask."""
    rates = {who: Fraction(1) for who in scripts} | dict(often or {})
    if unknown := sorted(rates.keys() - scripts.keys()):
        raise AnalystError(f"{unknown[0]!r} has a rate, and no questions")
    left = {who: list(questions) for who, questions in scripts.items()}
    merged: list[Asked] = []
    turns: Turns = {}
    while asking := [who for who, questions in left.items() if questions]:
        who, turns = RoundRobin(weights=rates).next(turns, asking)
        merged.append(Asked(analyst=who, sql=left[who].pop(0)))
    return merged


def replayed(log: Iterable[Line], analysts: Iterable[str]) -> list[Asked]:
    """The questions that these analysts have paid for, in their order; free answers are not in a log.

    Several records that one question paid for in a row are one question. Synthetic tables are none, and
    texts that were erased cannot be asked again.
    """
    known = set(analysts)
    asked_for = [line for line in log if line.rows and line.purpose and not line.purpose.startswith(PREFIX)]
    paid = [(line.analyst, line.purpose) for line in asked_for if line.analyst in known]
    asked = [Asked(analyst=who, sql=sql) for (who, text), _ in groupby(paid) for sql in questions_of(text)]
    if not asked:
        raise QueryError("the log has no question of an analyst who has a share\ntry: --mix NAME=FILE")
    return asked

"""Selections as something to enumerate: adversaries that select, and the law of the picks as it is defined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np

from bursar.core.queries import LinearMap
from harness.cells import coefficients, table_of
from harness.enumeration import BranchingTape, Enumerated
from harness.kernels import DOMAIN, Adversary, Session, Versions, enumerated
from harness.masses import DIGITS

Law = dict[tuple[int, ...], Decimal]
"""The probability of every sequence of picks."""


def selecting(
    candidates: LinearMap,
    estimates: Sequence[int] = (0,),
    *,
    count: int = 2,
    scale: float = 1.0,
    barred: Sequence[int] = (),
) -> Adversary:
    """Selects once; the estimates come again and again."""

    def adversary(session: Session) -> None:
        around = np.resize(np.array(estimates), candidates.rows)
        session.select(candidates, around, count=count, scale=scale, barred=barred)

    return adversary


def played(
    adversary: Adversary, tape: Callable[[BranchingTape], Any] = lambda tape: tape, **setting: object
) -> Enumerated[Versions]:
    """The law of everything that an adversary sees who only selects: every path is walked, and nothing is missing."""
    return enumerated(adversary, reach=0, margin=0, tape=tape, **setting)


def shown(mechanism: Enumerated[Versions], data: Versions, count: int) -> Law:
    """The law of the rows that a kernel's only record holds."""
    found: Law = {}
    for transcript, outcome in mechanism.transcripts(data).outcomes.items():
        body: bytes = transcript[-1][0]
        rows = tuple(np.frombuffer(body[-8 * count :], "<i8").tolist())
        found[rows] = found.get(rows, Decimal(0)) + outcome.mass
    return found


def promised(
    candidates: LinearMap,
    estimates: Sequence[int],
    count: int,
    scale: float,
    barred: Sequence[int],
    data: Versions,
) -> Law:
    """The law by its definition, on answers that are counted apart from the kernel."""
    answers = coefficients(candidates, DOMAIN) @ table_of(DOMAIN, data[-1]).ravel()
    around = np.resize(np.array(estimates), candidates.rows)
    scores = {row: abs(int(x)) for row, x in enumerate(answers - around) if row not in barred}
    return in_turn(scores, count, scale)


def in_turn(scores: dict[int, int], count: int, scale: float) -> Law:
    """One exponential mechanism after the other: the product of the picks' shares among those left."""
    with localcontext(Context(prec=DIGITS)):
        rate = Decimal(Fraction(scale).denominator) / Decimal(Fraction(scale).numerator)
        weights = {row: (rate * score).exp() for row, score in scores.items()}
        law = {}
        for rows in permutations(weights, count):
            left, mass = dict(weights), Decimal(1)
            for row in rows:
                mass *= left[row] / sum(left.values(), Decimal(0))
                del left[row]
            law[rows] = mass
        return law


def apart(one: Law, other: Law) -> Decimal:
    """The total variation distance of two laws."""
    return (
        sum((abs(one.get(rows, Decimal(0)) - other.get(rows, Decimal(0))) for rows in {*one, *other}), Decimal(0)) / 2
    )

"""Texts that get cells between purchases, enumerated: whoever there can be against the book, and the real kernel."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from itertools import combinations_with_replacement
from random import Random

import pytest

from bursar.core import tables
from bursar.core.accounting import Accountant, AddRemove, Book, Measured, Mode, Noise, NoiseKind, ReplaceOne
from bursar.core.domain import Neighbours, Unit
from bursar.core.extensions.open_keys import alike
from bursar.core.ledger import Purpose
from bursar.core.ledger.record_codec import encode_record
from bursar.core.noise.law import UNIT_BITS
from harness.cases import few
from harness.clock import same_clock
from harness.enumeration import ALLOWED, BranchingTape, Claims, Enumerated, Transcript, worst_ratio
from harness.open_texts import CITIES, CITY, OTHER, PLENTY, Rows, Text, cell_of, kernel_of, rows_over

CASES = 60
TEXTS: tuple[Text, ...] = ("a", "b", "c", None)
"""Two that may get the two cells, one that never does, and nobody's."""

Bought = list[tuple[list[int], Fraction, list[str]]]
"""A row, its scale, and the keys at the time."""


def session(rng: Random, *, checked: bool) -> Bought:
    """Rows that are bought while texts get cells; as the kernel admits them, or as they come."""
    keys: list[str] = []
    bought: Bought = []
    while len(bought) < 6:
        if rng.random() < 0.3 and len(keys) < CITY.capacity:
            keys = [*keys, ("a", "b")[len(keys)]]
            continue
        row = [rng.randint(-2, 2) for _ in range(CITY.size)]
        if checked:
            row[len(keys) : OTHER] = [row[OTHER]] * (OTHER - len(keys))
            assert alike(rows_over([row]), "city", len(keys), OTHER)
        bought.append((row, Fraction(rng.choice([1, 2, 4])), keys))
    return bought


def lost(unit: Rows, bought: Bought, mode: Mode, instead: Rows = ()) -> Fraction:
    """What somebody with these texts loses, each answer in the coding that it was given in."""
    total = Fraction(0)
    for row, scale, keys in bought:
        here, there = (sum(row[cell_of(text, keys)] for text in texts) for texts in (unit, instead))
        moved = abs(here - there)
        total += moved / scale if mode is Mode.PURE else moved**2 / (2 * scale**2)
    return total


def booked(bought: Bought, mode: Mode, unit: Unit) -> Fraction:
    kind = NoiseKind.LAPLACE if mode is Mode.PURE else NoiseKind.GAUSSIAN
    replaced = unit.neighbours is Neighbours.REPLACE_ONE

    def profile() -> AddRemove | ReplaceOne:
        return ReplaceOne(CITIES, AddRemove(CITIES)) if replaced else AddRemove(CITIES)

    book = Book(Accountant(mode=mode, unit=unit), profile)
    for row, scale, _ in bought:
        book.add(Measured(strategy=rows_over([row]), noise=Noise(kind=kind, scale=float(scale)), version=1))
    return Fraction(book.spent(), 2**UNIT_BITS)


def gaps(mode: Mode, most: int, *, checked: bool = True, replaced: bool = False) -> list[Fraction]:
    """By how much the largest true loss of anybody exceeds what is booked, case by case."""
    rng, found = Random(f"{mode}/{most}"), []
    neighbours = Neighbours.REPLACE_ONE if replaced else Neighbours.ADD_REMOVE
    unit = Unit(column=None if most == 1 else "person", max_contributions=most, neighbours=neighbours)
    units = [rows for size in range(1, most + 1) for rows in combinations_with_replacement(TEXTS, size)]
    for _ in range(CASES):
        bought = session(rng, checked=checked)
        pairs = [(one, other) for one in units for other in (units if replaced else [()])]
        true = max(lost(one, bought, mode, other) for one, other in pairs)
        found.append(true - booked(bought, mode, unit))
    return found


@pytest.mark.thinned(3)
@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("mode", [Mode.PURE, Mode.CONCENTRATED])
def test_what_is_spent_is_exactly_what_somebody_can_lose(mode: Mode, most: int) -> None:
    assert set(gaps(mode, most)) == {Fraction(0)}


@pytest.mark.heavy
@pytest.mark.parametrize("mode", [Mode.PURE, Mode.CONCENTRATED])
def test_and_who_is_replaced_by_somebody_else(mode: Mode) -> None:
    assert set(gaps(mode, 1, replaced=True)) == {Fraction(0)}


@pytest.mark.parametrize("mode", [Mode.PURE, Mode.CONCENTRATED])
def test_rows_that_tell_free_cells_apart_would_be_booked_too_low(mode: Mode) -> None:
    assert max(gaps(mode, 1, checked=False)) > 0


# -- the kernel --------------------------------------------------------------------------------------------------------

BASE: Rows = ("a",)
OTHERS = {"a text that is named": "a", "one that may be": "b", "one that never is": "c", "nobody's": None}
FINE = [[1, 1, 1, 0]]
FINER = [[1, 0, 0, 0]]
TELLING = [[0, 0, 1, 0]]
"""It tells `other` from a cell that is free."""


def played(first: list[list[int]], kind: NoiseKind = NoiseKind.LAPLACE) -> Enumerated[Rows]:
    """A row over what has no cell; then a text gets one, which depends on the answer, and is counted."""

    def program(data: Rows, tape: BranchingTape) -> tuple[Transcript, Claims[Rows]]:
        with same_clock():
            kernel = kernel_of(data, tape)
            seen: list[object] = []

            def measure(rows: list[list[int]], scale: float) -> int:
                law = Noise(kind=kind, scale=scale)
                terms = {"analyst": "eve", "purpose": Purpose("", "test"), "at_most": 2**60}
                record, charge = kernel.measure(rows_over(rows), law, **terms)  # type: ignore[arg-type]
                seen.append((encode_record(record), charge))
                return int(record.values[0])

            many = measure(first, 1.0)
            kernel.name_keys([("city", "a" if many > 0 else "b")], analyst="eve")
            measure(FINER, 1.0 if many > 1 else 2.0)
            seen += [encode_record(record) for record in kernel.ledger.records()]
            spent = kernel.spent()
        return tuple(seen), lambda left, right: Decimal(spent) / 2**UNIT_BITS

    return Enumerated(program, reach=4, margin=1)


@pytest.mark.heavy
@pytest.mark.parametrize("who", few(list(OTHERS)))
def test_no_transcript_tells_more_than_is_spent(who: str) -> None:
    assert worst_ratio(played(FINE), BASE, (*BASE, OTHERS[who])).excess <= ALLOWED


@pytest.mark.heavy
def test_a_kernel_that_lets_free_cells_be_told_apart_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "check_keys", lambda *facts: None)
    assert worst_ratio(played(TELLING), BASE, (*BASE, "a")).excess > ALLOWED
    assert PLENTY.amount == 100.0  # the budget refuses nothing here

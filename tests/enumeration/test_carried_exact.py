"""What is carried over, enumerated: everybody there can be under two configs against the two books, and transcripts of
two kernels of which one was handed over to the other."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from random import Random

import pytest

from bursar.core.accounting import Accountant, AddRemove, Book, Carried, Footprint, Measured, Mode, Noise, NoiseKind
from bursar.core.domain import Domain, Unit
from bursar.core.kernel import Kernel
from bursar.core.ledger import Purpose
from bursar.core.ledger.record_codec import encode_record
from bursar.core.noise.law import UNIT_BITS
from bursar.errors import BudgetError
from harness.clock import same_clock
from harness.enumeration import ALLOWED, BranchingTape, Claims, Enumerated, Transcript, worst_ratio
from harness.two_ledgers import TwoLedgers
from harness.two_tables import PEOPLE, VISITS, Rows, relations, rows_over, units_of

CASES = 25


def bought(rng: Random, domain: Domain, mode: Mode) -> list[tuple[Measured, list[list[int]]]]:
    kind = NoiseKind.LAPLACE if mode is Mode.PURE else NoiseKind.GAUSSIAN
    found = []
    for _ in range(rng.randint(1, 3)):
        rows = [[rng.randint(-2, 2) for _ in range(domain.attributes[0].size)] for _ in range(rng.randint(1, 2))]
        noise = Noise(kind=kind, scale=float(rng.choice([2, 4, 8])))
        found.append((Measured(strategy=rows_over(domain, rows), noise=noise, version=1), rows))
    return found


def lost(cells: tuple[tuple[int, ...], ...], events: list[tuple[Measured, list[list[int]]]], mode: Mode) -> Fraction:
    """What somebody with these rows loses, by the definition: every answer moves by the sum over the own rows."""
    total = Fraction(0)
    for event, rows in events:
        scale = Fraction(event.noise.scale)
        for row in rows:
            moved = abs(sum(row[cell] for (cell,) in cells))
            total += moved / scale if mode is Mode.PURE else moved**2 / (2 * scale**2)
    return total


def gaps(most: tuple[int, int], mode: Mode, kind: type[Book] = Book) -> list[Fraction]:
    """By how much the largest true loss of anybody under both configs exceeds what the second book says."""
    rng, found = Random(f"{most}/{mode}"), []
    for _ in range(CASES):
        first, second = bought(rng, PEOPLE, mode), bought(rng, VISITS, mode)
        units = units_of(*relations(*most))
        true = max(lost(one, first, mode) + lost(other, second, mode) for one, other in units)
        books = [
            kind(Accountant(mode=mode, unit=Unit(column="person", max_contributions=k)), lambda d=domain: AddRemove(d))
            for k, domain in zip(most, (PEOPLE, VISITS), strict=True)
        ]
        for event, _ in first:
            books[0].add(event)
        books[1].add(Carried(units=books[0].spent(), delta=0, ledger="00" * 32, onward=False))
        for event, _ in second:
            books[1].add(event)
        found.append(true - Fraction(books[1].spent(), 2**UNIT_BITS))
    return found


@pytest.mark.parametrize("mode", [Mode.PURE, Mode.CONCENTRATED])
@pytest.mark.parametrize("most", [(1, 1), (1, 2), (2, 1), (2, 2)])
def test_what_is_spent_is_exactly_what_somebody_can_lose_under_both(most: tuple[int, int], mode: Mode) -> None:
    assert set(gaps(most, mode)) == {Fraction(0)}


class Larger(Book):
    """Takes the larger of what was carried over and what was spent since."""

    def spent(self, plus: Iterable[Footprint] = ()) -> int:
        return max(self.carried, super().spent(plus) - self.carried)


class Forgetful(Book):
    def spent(self, plus: Iterable[Footprint] = ()) -> int:
        return super().spent(plus) - self.carried


@pytest.mark.parametrize("mode", [Mode.PURE, Mode.CONCENTRATED])
@pytest.mark.parametrize("twin", [Larger, Forgetful])
def test_wrong_sums_are_found(twin: type[Book], mode: Mode) -> None:
    assert max(gaps((1, 1), mode, twin)) > 0


# -- the kernels of both ledgers ---------------------------------------------------------------------------------------

BASE: Rows = (((0,), (1,)), ((0,), (2,)))
WITH: dict[str, Rows] = {
    "where the old one looked": (((0,), (1,), (0,)), ((0,), (2,), (2,))),
    "elsewhere": (((0,), (1,), (1,)), ((0,), (2,), (0,))),
}


def played(kind: type[Kernel] = Kernel, *, others: bool = True) -> Enumerated[Rows]:
    """The old ledger is asked, handed over, and asked again, for as much and for what costs nothing more; then the new
    one, with a finer noise where the first answer was high."""

    def program(data: Rows, tape: BranchingTape) -> tuple[Transcript, Claims[Rows]]:
        with same_clock():
            both = TwoLedgers(rows=data, randomness=tape, kind=kind)
            seen: list[object] = []

            def measure(kernel: Kernel, rows: list[list[int]], scale: float) -> int:
                law = Noise(kind=NoiseKind.LAPLACE, scale=scale)
                terms = {"analyst": "eve", "purpose": Purpose("", "test"), "at_most": 2**60}
                try:
                    record, charge = kernel.measure(rows_over(kernel.domain, rows), law, **terms)
                except BudgetError as refusal:
                    seen.append(str(refusal))
                    return 0
                seen.append((encode_record(record), charge))
                return int(record.values[0])

            first = measure(both.old, [[1, 0]], 1.0)
            new = both.handed_over()
            measure(both.old, [[1, 0]], 1.0)  # is refused
            if others:
                measure(both.old, [[0, 1]], 1.0)  # of others, who have lost nothing yet
            measure(new, [[0, 0, 1]], 1.0 if first > 1 else 2.0)
            spent = new.spent()
        return tuple(seen), lambda left, right: Decimal(spent) / 2**UNIT_BITS

    return Enumerated(program, reach=1, margin=1)


@pytest.mark.parametrize("who", WITH)
def test_no_transcript_of_both_tells_more_than_the_new_one_has_spent(who: str) -> None:
    assert worst_ratio(played(), BASE, WITH[who]).excess <= ALLOWED


def test_an_old_ledger_that_goes_on_is_found() -> None:
    class Open(Kernel):
        def _new_book(self) -> Book:
            book = super()._new_book()
            return Unclosed(book.accountant, book.new_profile, further=book.further)

    class Unclosed(Book):
        """Keeps nothing for the new ledger."""

        def add(self, event: object, position: int | None = None) -> None:
            if isinstance(event, Carried) and event.onward:
                event = Carried(units=0, delta=0, ledger=event.ledger, onward=True)
            super().add(event, position)  # type: ignore[arg-type]

    worst = worst_ratio(played(Open, others=False), BASE, WITH["where the old one looked"])
    assert worst.excess > ALLOWED

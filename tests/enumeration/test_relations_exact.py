"""Two private tables, enumerated: everybody there can be against the book, and transcripts of the real kernels."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from random import Random

import pytest

from bursar.core.accounting import Book, Footprint, Measured, Mode, Noise, NoiseKind, Versioned
from bursar.core.extensions.relations import Relation
from bursar.core.kernel import Kernel
from bursar.core.ledger import Purpose
from bursar.core.ledger.record_codec import encode_record
from bursar.core.noise.law import UNIT_BITS
from harness.cases import few
from harness.clock import same_clock
from harness.enumeration import ALLOWED, BranchingTape, Claims, Enumerated, Transcript, worst_ratio
from harness.two_tables import PEOPLE, VISITS, Rows, TwoTables, book_of, relations, rows_over, units_of

CASES = 25
BOUNDS = [(people, visits) for people in (1, 2, 3) for visits in (1, 2, 3)]


def events(rng: Random, mode: Mode) -> list[tuple[int, Measured, list[list[int]]]]:
    """Measurements of both tables in any order: which, the event, and its coefficients."""
    kind = NoiseKind.LAPLACE if mode is Mode.PURE else NoiseKind.GAUSSIAN
    found = []
    for place in (0, 1, *(rng.randint(0, 1) for _ in range(3))):
        domain = (PEOPLE, VISITS)[place]
        size = domain.attributes[0].size
        rows = [[rng.randint(-2, 2) for _ in range(size - 1)] + [rng.randint(1, 2)] for _ in range(rng.randint(1, 2))]
        noise = Noise(kind=kind, scale=float(rng.choice([2, 4, 8])))
        found.append((place, Measured(strategy=rows_over(domain, rows), noise=noise, version=1 + place), rows))
    rng.shuffle(found)
    return found


def lost(unit: Rows, bought: Iterable[tuple[int, Measured, list[list[int]]]], mode: Mode) -> Fraction:
    """What somebody with these rows loses, by the definition: every answer moves by the sum over the own rows."""
    total = Fraction(0)
    for place, event, rows in bought:
        scale = Fraction(event.noise.scale)
        for row in rows:
            moved = abs(sum(row[cell] for (cell,) in unit[place]))
            total += moved / scale if mode is Mode.PURE else moved**2 / (2 * scale**2)
    return total


def filled(book: Book, second: Relation, bought: Iterable[Measured]) -> Book:
    for event in (Versioned(version=1), second.added, Versioned(version=2, table=second.table), *bought):
        book.add(event)
    return book


def gaps(most: tuple[int, int], mode: Mode, kind: type[Book] = Book) -> list[Fraction]:
    """By how much the largest true loss of anybody exceeds what is booked, case by case."""
    first, second = relations(*most)
    rng, found = Random(f"{most}/{mode}"), []
    for _ in range(CASES):
        bought = events(rng, mode)
        true = max(lost(unit, bought, mode) for unit in units_of(first, second))
        book = filled(book_of(first, second, mode, kind), second, [event for _, event, _ in bought])
        found.append(true - Fraction(book.spent(), 2**UNIT_BITS))
    return found


@pytest.mark.sampled(6)
@pytest.mark.parametrize("mode", [Mode.PURE, Mode.CONCENTRATED])
@pytest.mark.parametrize("most", BOUNDS)
def test_what_is_spent_is_exactly_what_somebody_can_lose(most: tuple[int, int], mode: Mode) -> None:
    assert set(gaps(most, mode)) == {Fraction(0)}


class LargestTable(Book):
    """Takes the largest table instead of the sum, as if people occurred in one table only."""

    def spent(self, plus: Iterable[Footprint] = ()) -> int:
        assert not tuple(plus)
        return max(self.spent_by_table().values())


class OneBound(Book):
    """Prices every table by the bound of the first."""

    def footprints(self, event: object, block: object = None) -> tuple[Footprint, ...]:
        return self.accountant.footprints(event, block)  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", [Mode.PURE, Mode.CONCENTRATED])
@pytest.mark.parametrize(
    ("twin", "most"), [(LargestTable, (1, 1)), (OneBound, (1, 3))], ids=["the largest table", "one bound"]
)
def test_wrong_sums_are_found(twin: type[Book], most: tuple[int, int], mode: Mode) -> None:
    assert max(gaps(most, mode, twin)) > 0


# -- the kernels of both tables ----------------------------------------------------------------------------------------

BASE: Rows = (((0,), (1,)), ((0,), (2,)))
WITH = {
    "in both": (((0,), (1,), (0,)), ((0,), (2,), (2,), (2,))),
    "in people": (((0,), (1,), (0,)), ((0,), (2,))),
    "in visits": (((0,), (1,)), ((0,), (2,), (0,), (1,))),
}


def played(kind: type[Kernel] = Kernel) -> Enumerated[Rows]:
    """People are counted, then visits, with a finer noise where the first count was high."""

    def program(data: Rows, tape: BranchingTape) -> tuple[Transcript, Claims[Rows]]:
        with same_clock():
            both = TwoTables(rows=data, randomness=tape, most=(1, 2), kind=kind)
            seen: list[object] = []

            def measure(kernel: Kernel, rows: list[list[int]], scale: float) -> int:
                strategy = rows_over(kernel.domain, rows)
                law = Noise(kind=NoiseKind.LAPLACE, scale=scale)
                record, charge = kernel.measure(
                    strategy, law, analyst="eve", purpose=Purpose("", "test"), at_most=2**60
                )
                seen.append((encode_record(record), charge))
                return int(record.values[0])

            women = measure(both.people, [[1, 0]], 1.0)
            measure(both.visits, [[0, 1, 1]], 1.0 if women > 1 else 2.0)
            spent = both.visits.spent()
            assert spent == both.people.spent()
        return tuple(seen), lambda left, right: Decimal(spent) / 2**UNIT_BITS

    return Enumerated(program, reach=4, margin=2)


@pytest.mark.heavy
@pytest.mark.parametrize("who", few(sorted(WITH, key=lambda who: who != "in both")))
def test_no_transcript_tells_more_than_is_spent(who: str) -> None:
    worst = worst_ratio(played(), BASE, WITH[who])
    assert worst.excess <= ALLOWED


@pytest.mark.heavy
def test_a_kernel_that_takes_the_largest_table_is_found() -> None:
    class Twin(Kernel):
        def _new_book(self) -> Book:
            book = super()._new_book()
            return LargestWithHolds(book.accountant, book.new_profile, further=book.further)

    class LargestWithHolds(Book):
        def spent(self, plus: Iterable[Footprint] = ()) -> int:
            later = self.copy()
            for generation, footprints in later._by_generation(plus).items():
                later._profile(generation).add(footprints)
            return max(later.spent_by_table().values())

    worst = worst_ratio(played(Twin), BASE, WITH["in both"])
    assert worst.excess > ALLOWED

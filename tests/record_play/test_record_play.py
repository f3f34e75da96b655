"""Record-play of the whole engine: neighbours cannot be told apart by anything but the noise that was paid for."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import cycle, islice
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from bursar import presets
from bursar.answer import Answer
from bursar.config import Config
from bursar.core.accounting import (
    Closed,
    Event,
    Failed,
    Footprint,
    Mode,
    Noise,
    Opened,
    Refined,
    ReplaceOne,
    Selected,
    Versioned,
)
from bursar.core.accounting.accountant import Accountant, Book
from bursar.core.accounts import Charge
from bursar.core.budget import Budget
from bursar.core.domain import Domain, Unit
from bursar.core.extensions.partitions import PartitionAxis
from bursar.core.extensions.refine import Blocks
from bursar.core.extensions.replace_one import Change
from bursar.core.extensions.sparse_vector import SparseVectors
from bursar.core.kernel import Kernel
from bursar.core.ledger import Purpose, Record, Transaction
from bursar.core.queries import LinearMap, Norm, Predicate, Product, Stack, Steps
from bursar.core.source.source import Source
from bursar.errors import BudgetError
from bursar.proposers.invest import Invest
from bursar.session import Bursar
from harness.cells import Numbers
from harness.people import DOMAIN, MakeSource, Pair, People, Person, plain_source, stored_source
from harness.questions import KINDS, Scene, scene
from harness.record_play import faults
from harness.small import TableSource, config
from harness.stage import AS_IT_IS, Under, play
from harness.steps import Ask, Choose, Declare, Overtake, Refine, Try
from harness.twins import GroupsFromTheData, PricesAddRemove, clipped, drawing, drawn_again, exact, sparing

QUICK, FOUND_WITHIN = 25, 50
MANY = int(os.environ.get("BURSAR_SCENES", "10"))
"""Scenes of each kind in the soak test. A thousand take the better part of an hour: BURSAR_SCENES=1000."""

ALIKE = 6
"""Quick scenes of each of the many kinds that all come down to `measure`, where every fault that is planted below shows
within five pairs. Faults that only one kind can show take up to eighteen: such a kind has `QUICK` of them."""

OF_THEIR_OWN = {"people", "per person", "tied", "versions", "refined", "growing", "tested", "chosen"}

FEW, FEW_OF_THEIR_OWN = 1, 2
"""Scenes of a kind that `make test` plays. `make test-all` and `make soak` play the others."""

STORED = Under(source=stored_source)


def check(kind: str, numbers: Iterable[int]) -> None:
    for number in numbers:
        played = scene(kind, number)
        with small_masks() if kind == "tied" else nullcontext():
            found = faults(played.pair, played.steps, UNDER.get(kind, AS_IT_IS))
        assert found == [], f"{kind} {number}"


class FewJointCells(Bursar):
    """As with real sizes, where no mask holds a condition: no strategy answers all questions about its columns."""

    def __init__(self, *facts: Any, **rest: Any) -> None:
        few = tuple(one for one in presets.default.proposers if not isinstance(one, Invest))
        super().__init__(*facts, **rest, preset=replace(presets.default, proposers=few))


TIED = Under(engine=FewJointCells)


UNDER = {"stored": STORED, "tied": TIED}


def small_masks() -> AbstractContextManager[Any]:
    """Masks over no more than four joint cells: conditions on two columns are counted by the source."""
    return patch("bursar.compile.conditions.LARGEST_JOINT", 4)


def quick(kind: str) -> int:
    return QUICK if kind in OF_THEIR_OWN else 8 if kind == "stored" else ALIKE


def few(kind: str) -> int:
    return FEW_OF_THEIR_OWN if kind in OF_THEIR_OWN else FEW


@pytest.mark.thinned(4)
@pytest.mark.parametrize("kind", KINDS)
def test_neighbours_look_the_same(kind: str) -> None:
    check(kind, range(few(kind)))


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=pytest.mark.soak if place % 3 else pytest.mark.heavy)
        for place, kind in enumerate(KINDS)
    ],
)
def test_more_neighbours_look_the_same(kind: str) -> None:
    check(kind, range(few(kind), quick(kind)))


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_many_neighbours_look_the_same(kind: str) -> None:
    check(kind, range(quick(kind), quick(kind) + MANY))


@pytest.mark.heavy
def test_the_scenes_are_worth_playing() -> None:
    """Every way to end is met: answers bought and free, explanations, and all the refusals that there are."""
    endings: set[str] = set()
    bought = 0
    for kind in KINDS:
        for number in range(4):
            played = scene(kind, number)
            run = play(played.pair, played.pair.right, played.steps)
            bought += sum(call.record is not None for call in run.calls)
            endings |= {call.ended[1] for call in run.calls if call.ended[0] == "refused"}
            endings |= {seen[2] if seen[1] == "refused" else seen[1][0] for seen in run.seen if seen[0] == "asked"}
    assert endings >= {"Answer", "Explanation", "BudgetError", "QueryError", "GoalError", "KeyConflict"}
    assert endings >= {"LedgerError", "SourceError", "Stale", "Busy"}
    assert bought > 100


@pytest.mark.soak
def test_the_counts_that_tie_columns_are_worth_playing() -> None:
    """They are bought one by one, several under one hold, and found again; sources fail in between."""
    several, sources, endings = 0, Counter[str](), set[str]()
    for number in range(QUICK):
        played = scene("tied", number)
        with small_masks():
            run = play(played.pair, played.pair.left, played.steps, TIED)
        counted = [call for call in run.calls if call.verb == "measure" and call.record is not None]
        several += sum(isinstance(call.record.event.strategy, Predicate) for call in counted)
        sources.update(
            Answer.from_bytes(seen[1][1]).source for seen in run.seen if seen[0] == "asked" and seen[1][0] == "Answer"
        )
        endings |= {seen[2] for seen in run.seen if seen[0] == "asked" and seen[1] == "refused"}
    assert several > 60
    assert min(sources["direct"], sources["one-by-one"]) > 5
    assert endings >= {"SourceError", "LedgerError"}


@pytest.mark.soak
def test_the_refinements_are_worth_playing() -> None:
    """Rows are refined, refused where the budget is not pure or used up, overtaken by others; commits are lost."""
    refined = 0
    endings: set[str] = set()
    for number in range(QUICK):
        played = scene("refined", number)
        run = play(played.pair, played.pair.left, played.steps)
        refined += sum(call.verb == "refine" and call.record is not None for call in run.calls)
        endings |= {call.ended[1] for call in run.calls if call.verb == "refine" and call.record is None}
        endings |= {seen[2] for seen in run.seen if seen[0] == "refined" and seen[1] == "refused"}
    assert refined > 20
    assert endings >= {"Stale", "Unsupported", "BudgetError", "LedgerError"}


@pytest.mark.soak
def test_the_partitions_are_worth_playing() -> None:
    """Partitions are sealed, between questions and while one is asked; questions about others are refused."""
    sealed, bought, endings = 0, 0, set()
    for number in range(QUICK):
        played = scene("growing", number)
        run = play(played.pair, played.pair.left, played.steps)
        bought += sum(call.record is not None for call in run.calls)
        endings |= {seen[3] for seen in run.seen if seen[0] == "asked" and seen[1] == "refused"}
        (log,) = (seen for seen in run.seen if seen[0] == "ledger")
        sealed += sum(b'"kind":"sealed"' in record for record in log[2:])
    assert sealed > 40
    assert bought > 50
    assert any("no partition of age is sealed" in ending for ending in endings)
    assert any("the last sealed one is" in ending for ending in endings)


@pytest.mark.soak
def test_the_tests_of_sparse_vectors_are_worth_playing() -> None:
    """Every outcome is met: passes, failures, instances closed after a lost commit, and all refusals."""
    outcomes: Counter[Any] = Counter()
    events: Counter[str] = Counter()
    for number in range(QUICK):
        played = scene("tested", number)
        run = play(played.pair, played.pair.left, played.steps)
        outcomes.update(call.ended[0] for call in run.calls if call.verb == "test" and call.ended[0] != "refused")
        outcomes.update(call.ended[1] for call in run.calls if call.verb == "test" and call.ended[0] == "refused")
        outcomes.update(seen[2] for seen in run.seen if seen[0] == "tested" and seen[1] == "refused")
        events.update(type(record.event).__name__ for record in run.log)
    assert min(outcomes[True], outcomes[False], events["Opened"], events["Failed"]) > 20
    assert set(outcomes) >= {"Stale", "QueryError", "BudgetError", "LedgerError", "SourceError", "Busy"}
    assert events["Closed"] > 1


@pytest.mark.soak
def test_the_selections_are_worth_playing() -> None:
    """Rows are selected, by themselves and before a measurement; selections are refused, overtaken and lost."""
    selected, planned, endings = 0, 0, Counter[str]()
    for number in range(QUICK):
        played = scene("chosen", number)
        run = play(played.pair, played.pair.left, played.steps)
        bought = [call.record for call in run.calls if call.verb == "select" and call.record is not None]
        selected += len(bought)
        planned += sum(seen[0] == "chosen" and len(seen[1]) == 2 for seen in run.seen)
        endings.update(seen[2] for seen in run.seen if seen[0] == "chosen" and seen[1] == "refused")
    assert selected > 40
    assert planned > 5
    assert set(endings) >= {"QueryError", "BudgetError", "LedgerError", "SourceError", "Stale"}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("source", [plain_source, stored_source], ids=["plain", "stored"])
def test_a_new_row_may_take_the_place_of_a_counted_one(source: MakeSource) -> None:
    """A unit's second row, added in the second version, may be the one that is kept from then on."""
    women, men = (Ask(sql=f"SELECT COUNT(*) FROM people WHERE sex = '{sex}'", wanted={"within": 5}) for sex in "FM")
    first, second = ("F", "1", "5"), ("M", "1", "5")
    settings = config(domain=DOMAIN, unit=Unit(column="person"), budget=Budget.of(epsilon=5.0), max_rows=1000)
    ours = ((Person(name="eve", rows=(first,)),), (Person(name="eve", rows=(first, second)),))
    steps = [women, Declare(same_rows=True), men]
    pairs = [Pair(seed=f"moved/{n}", settings=settings, left=((), ()), right=ours) for n in range(3)]
    assert [faults(pair, steps, Under(source=source)) for pair in pairs] == [[]] * 3
    with patch.object(Book, "add", every_added_row_shares):
        assert any(faults(pair, steps, Under(source=source)) for pair in pairs)


WOMEN = (("sex", (1, 0, 0)),)
OVERTAKEN: dict[str, Ask | Refine | Try | Choose] = {
    "measure": Ask(sql="SELECT COUNT(*) FROM people", wanted={"within": 9}),
    "refine": Refine(block=0),
    "open": Try(scope=WOMEN, query=WOMEN, estimate=0, anew=True),
    "test": Try(scope=WOMEN, query=WOMEN, estimate=0),
    "select": Choose(sets=(WOMEN,), estimates=(0,), count=1, scale=8.0),
}


@pytest.mark.parametrize("verb", OVERTAKEN)
def test_every_verb_can_be_overtaken(verb: str) -> None:
    """Else no scene would show what becomes of a verb whose data are replaced before it commits."""
    settings = config(domain=DOMAIN, unit=Unit(column="person"), budget=Budget.of(epsilon=50.0), max_rows=1000)
    pair = Pair(seed="overtaken", settings=settings, left=((), ()), right=((), ()))
    measured = Ask(sql="SELECT COUNT(*) FROM people WHERE sex = 'F'", wanted={"within": 9})
    opened = Try(scope=WOMEN, query=WOMEN, estimate=0)
    run = play(pair, pair.left, [measured, opened, Overtake(step=Declare(same_rows=False)), OVERTAKEN[verb]])
    refusals = [call.ended[1] for call in run.calls if call.verb == verb and call.ended[0] == "refused"]
    assert refusals == ["Stale"]


# -------------------------------------------------------------------------------------------------- planted faults


class ScaleFromTheData(Kernel):
    def measure(self, strategy: LinearMap, noise: Noise, **rest: Any) -> tuple[Record, Charge]:
        crowded = exact(self, strategy).max(initial=0) > 1
        return super().measure(strategy, replace(noise, scale=noise.scale * 2) if crowded else noise, **rest)


class RowsFromTheData(Kernel):
    """Only rows that somebody is in get finer noise."""

    def refine(self, block: int, rows: Sequence[int], noise: Noise, **rest: Any) -> tuple[Record, Charge]:
        answers = exact(self, self._blocks.find(block).strategy)
        return super().refine(block, [row for row in rows if answers[row] > 0] or rows, noise, **rest)


class FromTheFirst(Blocks):
    """Rows are refined under the noise that they were measured with, whatever was refined since."""

    def values(self, event: Refined, pending: Iterable[Record] = ()) -> Numbers:
        super().values(event, pending)
        return self.records[event.block].values[event.rows]


class RefinesTheFirst(Kernel):
    def __init__(self, **parts: Any) -> None:
        super().__init__(**parts)
        self._blocks = FromTheFirst()


class NeverEnds(SparseVectors):
    """A test that is above leaves the instance open."""

    def end(self, transaction: Transaction, event: Failed | Closed, facts: Any) -> None: ...


class Forgetful(SparseVectors):
    """A test whose outcome was lost is forgotten."""

    def give_back(self, transaction: Transaction, fence: int) -> None:
        self._unsettled.clear()
        super().give_back(transaction, fence)


class GoesOn(Kernel):
    def __init__(self, **parts: Any) -> None:
        super().__init__(**parts)
        self._vectors = NeverEnds()


class Forgets(Kernel):
    def __init__(self, **parts: Any) -> None:
        super().__init__(**parts)
        self._vectors = Forgetful()


class NoNoiseNearby(Kernel):
    """Tests that are not close are decided without noise."""

    def test(self, instance: int, query: LinearMap, estimate: int, **rest: Any) -> bool:
        true, away = self._randomness, abs(int(exact(self, query)[0]) - estimate)

        class Sparing:
            def draw(self, noise: Noise, size: int) -> Numbers:
                drawn = true.draw(noise, size)
                return drawn if away < 4 else drawn * 0

        self._randomness = Sparing()
        try:
            return super().test(instance, query, estimate, **rest)
        finally:
            self._randomness = true


def told(purpose: Purpose, rows: int) -> Purpose:
    """A text that gives away how many rows there are."""
    return replace(purpose, text=f"{purpose.text} ({rows} rows)")


class DistanceInTheLog(Kernel):
    def test(self, instance: int, query: LinearMap, estimate: int, **rest: Any) -> bool:
        rest["purpose"] = told(rest["purpose"], exact(self, query)[0])
        return super().test(instance, query, estimate, **rest)


class OffByOne(Kernel):
    """What is exactly there counts as below."""

    def test(self, instance: int, query: LinearMap, estimate: int, **rest: Any) -> bool:
        true = self._randomness

        class Less:
            def draw(self, noise: Noise, size: int) -> Numbers:
                return true.draw(noise, size) - 1

        self._randomness = Less()
        try:
            return super().test(instance, query, estimate, **rest)
        finally:
            self._randomness = true


class AnyQuery(Kernel):
    def check_test(self, opened: Opened, query: LinearMap, estimate: int) -> Product:
        return query


class NobodyThere(Kernel):
    """Candidates that count nobody are not selected."""

    def select(self, candidates: LinearMap, estimates: Numbers, **rest: Any) -> tuple[Record, Charge]:
        empty = np.flatnonzero(exact(self, candidates) == 0)[: candidates.rows - len(rest["barred"]) - rest["count"]]
        return super().select(candidates, estimates, **rest | {"barred": np.union1d(rest["barred"], empty)})


class CloseEnough(Kernel):
    """Scores below 2 count as 0."""

    def select(self, candidates: LinearMap, estimates: Numbers, **rest: Any) -> tuple[Record, Charge]:
        true = self._randomness

        class Blunt:
            def select(self, scores: Numbers, *, count: int, scale: float) -> Numbers:
                return true.select(np.where(scores == 1, 0, scores), count=count, scale=scale)

        self._randomness = Blunt()
        try:
            return super().select(candidates, estimates, **rest)
        finally:
            self._randomness = true


class ScoresInTheLog(Kernel):
    def select(self, candidates: LinearMap, estimates: Numbers, **rest: Any) -> tuple[Record, Charge]:
        rest["purpose"] = told(rest["purpose"], exact(self, candidates).sum())
        return super().select(candidates, estimates, **rest)


class PriceFromTheData(Kernel):
    def price(self, events: Iterable[Event]) -> int:
        return super().price(events) + int(self._opened()[1].counts(()).sum())


class NothingToHide(Kernel):
    """Where nobody is, zeros are returned without a charge."""

    def measure(self, strategy: LinearMap, noise: Noise, **rest: Any) -> tuple[Record, Charge]:
        answers = exact(self, strategy)
        if answers.any():
            return super().measure(strategy, noise, **rest)
        last = self.ledger.records()[-1]
        return replace(last, values=answers), 0


class CountsInTheLog(Kernel):
    def measure(self, strategy: LinearMap, noise: Noise, **rest: Any) -> tuple[Record, Charge]:
        rest["purpose"] = told(rest["purpose"], exact(self, strategy).sum())
        return super().measure(strategy, noise, **rest)


class TellingRefusals(Bursar):
    def run(self, *facts: Any, **rest: Any) -> Any:
        try:
            return super().run(*facts, **rest)
        except BudgetError as refusal:
            refusal.fits += f" for {self.kernel._opened()[1].counts(()).sum()} rows"
            raise


class Growing(TableSource):
    """The stored data grow while they are in use."""

    def table(self, attrs: tuple[str, ...]) -> Numbers:
        counted = super().table(attrs)
        self.counts = self.counts + 1
        return counted


def growing_source(settings: Config, people: People, key: bytes) -> Source:
    plain = plain_source(settings, people, key)
    return Growing(plain.table(DOMAIN.names), DOMAIN, content=plain.content()[0])


def boundless_source(settings: Config, people: People, key: bytes) -> Source:
    """Every row of a unit counts."""
    unit = replace(settings.unit, max_contributions=1000 if settings.unit.column else 1)
    return plain_source(replace(settings, unit=unit), people, key)


def crowding_source(settings: Config, people: People, key: bytes) -> Source:
    """Which rows of a unit are kept depends on who else is there."""
    key = bytes(byte ^ len(people) for byte in key)
    return plain_source(settings, people, key)


def sizes_for_all(domain: Domain, unit: Unit) -> PartitionAxis | None:
    """The sizes of partitions are told, also where they are private."""
    axis = AXIS(domain, unit)
    return None if axis is None else replace(axis, public_sizes=True)


AXIS = PartitionAxis.of


def first_partition_only(footprint: Footprint, domain: Domain) -> list[tuple[Change, list[int]]]:
    """Of all partitions that a question looks at, the first one pays."""
    return [(change, places[:1]) for change, places in CHANGES(footprint, domain)[:1]]


CHANGES = ReplaceOne._changes


def last_cell_forgotten(self: Steps, power: int) -> Numbers:
    sums = SUMS(self, power)
    return np.append(sums[:-1], 0) if len(sums) > 1 else sums


def first_part_only(self: Stack, power: int) -> tuple[Norm, ...]:
    return self.parts[0].norms(power) if self.parts else ()


SUMS = Steps.norms


def rows_of_a_unit_forgotten(self: Accountant, noise: Noise, finer: int = 0) -> int:
    one = replace(self, unit=Unit(neighbours=self.unit.neighbours))
    return UNITS(one, noise, finer)


UNITS = Accountant.units


def nothing_more(self: Accountant, before: Noise, after: Noise) -> tuple[int, int]:
    return (0, 0) if self.mode is Mode.PURE else DIFFERENCE(self, before, after)


DIFFERENCE = Accountant.difference


def threshold_only(self: Accountant, opened: Opened, finer: int = 0) -> int:
    return self.units(opened.threshold, finer)


def as_printed(self: Accountant, selected: Selected, finer: int = 0) -> int:
    """Half of what the picks cost: what the printed scale of RAP's Alg. 4 comes to."""
    return PICKS(self, selected, finer) // 2


PICKS = Accountant.selected_units


def never_a_new_generation(self: Book, event: Event, position: int | None = None) -> None:
    ADD(self, event, position)
    self.generations = dict.fromkeys(self.generations, 1)


def every_added_row_shares(self: Book, event: Event, position: int | None = None) -> None:
    """As if a unit of several rows were always counted by the same ones."""
    ADD(self, event, position)
    if isinstance(event, Versioned) and event.same_rows:
        self.generations[event.version] = self.generations[event.version - 1]


ADD = Book.add


@dataclass(frozen=True)
class Plant:
    """A fault in a part of the engine, or patched into it, and the kinds of question that go near it."""

    under: Under = AS_IT_IS
    patched: Callable[[], AbstractContextManager[Any]] = nullcontext
    kinds: tuple[str, ...] = tuple(kind for kind in KINDS if kind != "stored")

    def scenes(self) -> list[Scene]:
        return [scene(kind, 1000 + n) for n, kind in enumerate(islice(cycle(self.kinds), FOUND_WITHIN))]


PLANTS = {
    "groups from the data": Plant(Under(kernel=GroupsFromTheData)),
    "scale from the data": Plant(Under(kernel=ScaleFromTheData)),
    "price from the data": Plant(Under(kernel=PriceFromTheData)),
    "no noise on zeros": Plant(Under(kernel=drawing(sparing))),
    "answers clipped in the kernel": Plant(Under(kernel=drawing(clipped))),
    "drawn again below zero": Plant(Under(kernel=drawing(drawn_again))),
    "early exit for nobody": Plant(Under(kernel=NothingToHide)),
    "exact counts in the log": Plant(Under(kernel=CountsInTheLog)),
    "replace-one priced as add-remove": Plant(Under(kernel=PricesAddRemove), kinds=("group by", "percent")),
    "exact counts in a message": Plant(Under(engine=TellingRefusals), kinds=("refused", "overtaken")),
    "rows to refine from the data": Plant(Under(kernel=RowsFromTheData), kinds=("refined",)),
    "refined under noise of long ago": Plant(Under(kernel=RefinesTheFirst), kinds=("refined",)),
    "refinements for free": Plant(
        patched=lambda: patch.object(Accountant, "difference", nothing_more), kinds=("refined",)
    ),
    "tests that are above and close nothing": Plant(Under(kernel=GoesOn), kinds=("tested",)),
    "a lost test is forgotten": Plant(Under(kernel=Forgets), kinds=("tested",)),
    "no noise on tests that are not close": Plant(Under(kernel=NoNoiseNearby), kinds=("tested",)),
    "exact counts beside a failed test": Plant(Under(kernel=DistanceInTheLog), kinds=("tested",)),
    "a test compares with one less": Plant(Under(kernel=OffByOne), kinds=("tested",)),
    "queries beyond their scope": Plant(Under(kernel=AnyQuery), kinds=("tested",)),
    "tests for free": Plant(
        patched=lambda: patch.object(Accountant, "opened_units", threshold_only), kinds=("tested",)
    ),
    "candidates from the data": Plant(Under(kernel=NobodyThere), kinds=("chosen",)),
    "scores that are rounded": Plant(Under(kernel=CloseEnough), kinds=("chosen",)),
    "exact counts beside a selection": Plant(Under(kernel=ScoresInTheLog), kinds=("chosen",)),
    "selections at half their price": Plant(
        patched=lambda: patch.object(Accountant, "selected_units", as_printed), kinds=("chosen",)
    ),
    "data that change after they were declared": Plant(Under(source=growing_source)),
    "no bound on a unit's rows": Plant(Under(source=boundless_source)),
    "a unit's rows depend on others": Plant(Under(source=crowding_source)),
    "a norm without its last cell": Plant(
        patched=lambda: patch.object(Steps, "norms", last_cell_forgotten), kinds=("group by", "repeated")
    ),
    "a norm of the first rows only": Plant(
        patched=lambda: patch.object(Stack, "norms", first_part_only), kinds=("several aggregates",)
    ),
    "a unit's rows not in the price": Plant(
        patched=lambda: patch.object(Accountant, "units", rows_of_a_unit_forgotten), kinds=("several rows",)
    ),
    "sizes of partitions in the log": Plant(
        patched=lambda: patch.object(PartitionAxis, "of", staticmethod(sizes_for_all)), kinds=("growing",)
    ),
    "only the first partition pays": Plant(
        patched=lambda: patch.object(ReplaceOne, "_changes", staticmethod(first_partition_only)), kinds=("growing",)
    ),
    "versions in one profile": Plant(
        patched=lambda: patch.object(Book, "add", never_a_new_generation), kinds=("versions",)
    ),
}


REPRESENTATIVES = {
    "scale from the data",
    "exact counts in the log",
    "replace-one priced as add-remove",
    "exact counts in a message",
    "refined under noise of long ago",
    "tests that are above and close nothing",
    "selections at half their price",
    "a unit's rows depend on others",
    "a norm of the first rows only",
    "versions in one profile",
}
"""One fault of each family: data that decide, data that show, each verb, units, norms and versions."""


def test_the_representatives_are_planted() -> None:
    assert PLANTS.keys() >= REPRESENTATIVES


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in REPRESENTATIVES else pytest.mark.heavy) for name in PLANTS]
)
def test_a_planted_fault_is_found_within_fifty_pairs(name: str) -> None:
    plant = PLANTS[name]
    with plant.patched():
        assert any(faults(played.pair, played.steps, plant.under) for played in plant.scenes())

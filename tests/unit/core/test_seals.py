"""Sealed partitions: what the log says about them, what may be looked at, and data that change behind a seal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest

from bursar.core.accounting import Measured, Noise, NoiseKind, Sealed, Versioned
from bursar.core.budget import Budget
from bursar.core.domain import Domain, Neighbours, Unit
from bursar.core.extensions.curator import declare_version, seal
from bursar.core.extensions.partitions import PartitionAxis, Seals, check_sealed, looked_at
from bursar.core.kernel import Kernel
from bursar.core.ledger import MemoryLedger, Purpose, Transaction
from bursar.core.noise.system import SystemRandomness
from bursar.core.queries import LinearMap, Mask, Product, Stack, Steps, Transform
from bursar.errors import ConfigError, LedgerError, QueryError, SourceError
from harness.maps import domain_of, mask_of
from harness.small import Silence, TableSource, charter, config

PLAIN = domain_of(week=4, age=3)
DOMAIN = Domain(PLAIN.attributes, partition="week")
EIGHT = Noise(kind=NoiseKind.LAPLACE, scale=8.0)
AGES = mask_of(DOMAIN, ("age",), np.eye(3, dtype=int))


def weeks(first: int, end: int) -> Product:
    return Product((Mask(("week",), (4,), Steps.ranges([first], [end], 4)), AGES))


@dataclass
class Stored:
    """A ledger and the data behind it, which anybody may change."""

    neighbours: Neighbours = Neighbours.ADD_REMOVE
    counts: np.ndarray = field(default_factory=lambda: np.arange(12).reshape(4, 3))
    opened: int = 0

    def __post_init__(self) -> None:
        unit = Unit(neighbours=self.neighbours)
        self.settings = config(domain=DOMAIN, unit=unit, budget=Budget.of(epsilon=50.0), public_size=66)
        self.ledger = MemoryLedger(charter(self.settings))
        axis = PartitionAxis.of(DOMAIN, unit)
        assert axis is not None
        self.axis = axis

    def open_source(self, key: bytes) -> TableSource:
        self.opened += 1
        return TableSource(self.counts.copy(), DOMAIN)

    def declare(self, **options: object) -> int:
        return declare_version(self.ledger, self.open_source, SystemRandomness(), axis=self.axis, **options)

    def seal(self, through: int) -> int:
        return seal(self.ledger, self.open_source, axis=self.axis, through=through)

    def kernel(self) -> Kernel:
        facts = {"domain": DOMAIN, "unit": self.settings.unit, "budget": self.settings.budget, "max_rows": 1000}
        return Kernel(**facts, ledger=self.ledger, open_source=self.open_source, randomness=Silence())


def measure(kernel: Kernel, strategy: LinearMap) -> list[int]:
    record, _ = kernel.measure(strategy, EIGHT, analyst="ana", purpose=Purpose("", "test"), at_most=2**60)
    return record.values.tolist()


@pytest.fixture
def stored() -> Stored:
    made = Stored()
    made.declare()
    return made


# -- what a strategy looks at ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("strategy", "reach"),
    [
        (weeks(0, 1), 1),
        (weeks(1, 3), 3),
        (Product((AGES,)), 4),
        (Product(()), 4),
        (Stack(()), 0),
        (Stack((weeks(0, 1), weeks(0, 2))), 2),
        (Stack((weeks(0, 1), Product((AGES,)))), 4),
        (Product((Mask(("week",), (4,), Steps.ranges([2], [2], 4)),)), 0),
        (Product((Mask(("week",), (4,), Steps.total(4)), mask_of(DOMAIN, ("age",), [[0, 0, 0]]))), 0),
        (Product((mask_of(DOMAIN, ("age", "week"), [[0, 1, 0, 0] * 3]),)), 2),
        (Product((mask_of(DOMAIN, ("week", "age"), [[0] * 8 + [1] + [0] * 3, [1] + [0] * 11]),)), 3),
    ],
)
def test_how_far_a_strategy_looks(strategy: LinearMap, reach: int) -> None:
    assert looked_at(strategy, DOMAIN) == reach
    assert looked_at(strategy, PLAIN) == 0
    check_sealed(strategy, DOMAIN, reach)
    if reach > 0:
        with pytest.raises(QueryError, match="partitions of week that are not sealed"):
            check_sealed(strategy, DOMAIN, reach - 1)


def test_a_transform_looks_at_the_cells_that_have_weight() -> None:
    ones, place = np.ones(7, np.int64), {"first": 1, "start": 2, "period": 8, "shift": 0, "max_rows": 10}
    along = Transform(column="week", size=4, row_weights=ones, cell_weights=np.array([1, 1, 0]), **place)
    across = Transform(column="age", size=3, row_weights=ones, cell_weights=np.array([1, 1]), **place)
    assert (looked_at(along, DOMAIN), looked_at(across, DOMAIN)) == (3, 4)


# -- what the log says -------------------------------------------------------------------------------------------------


def test_seals_follow_the_log() -> None:
    seals = Seals()
    for event in (Versioned(version=1), Sealed(through=1, version=1), Sealed(through=3, version=1)):
        seals.add(event)
    assert (seals.version, seals.sealed, seals.sizes) == (1, 4, ())
    seals.add(Versioned(version=2))
    seals.add(Sealed(through=0, version=2, sizes=(7,)))
    seals.add(Measured(strategy=weeks(0, 1), noise=EIGHT, version=2))
    seals.add(Sealed(through=2, version=2, sizes=(8, 9)))
    assert (seals.version, seals.sealed, seals.sizes) == (2, 3, (7, 8, 9))


@pytest.mark.parametrize(
    "wrong",
    [
        Sealed(through=1, version=1),
        Sealed(through=0, version=1),
        Sealed(through=2, version=2),
        Sealed(through=3, version=1, sizes=(5,)),
    ],
)
def test_a_log_that_takes_a_seal_back_is_refused(wrong: Sealed) -> None:
    seals = Seals()
    seals.add(Versioned(version=1))
    seals.add(Sealed(through=1, version=1))
    with pytest.raises(LedgerError, match="out of their order"):
        seals.add(wrong)


def test_units_of_several_rows_cannot_be_replaced_inside_a_partition() -> None:
    several = Unit(column="person", neighbours=Neighbours.REPLACE_ONE)
    with pytest.raises(ConfigError, match="add-remove"):
        PartitionAxis.of(DOMAIN, several)
    assert PartitionAxis.of(PLAIN, several) is None
    assert PartitionAxis.of(DOMAIN, Unit(column="person")) == PartitionAxis(column="week", size=4, public_sizes=False)


# -- the kernel --------------------------------------------------------------------------------------------------------


def test_only_sealed_partitions_are_measured(stored: Stored) -> None:
    kernel = stored.kernel()
    assert kernel.sealed() == 0
    with pytest.raises(QueryError, match="not sealed"):
        measure(kernel, weeks(0, 1))
    assert stored.seal(1) == 2
    assert kernel.sealed() == 2
    assert measure(kernel, weeks(0, 2)) == [3, 5, 7]
    for strategy in (weeks(0, 3), weeks(2, 3), Product((AGES,)), Product(())):
        with pytest.raises(QueryError, match="not sealed"):
            measure(kernel, strategy)
    assert kernel.spent_by_partition() == [2**47, 2**47, 0, 0]


def test_without_partitions_nothing_is_sealed() -> None:
    settings = config()
    ledger = MemoryLedger(charter(settings))
    kernel = Kernel(
        domain=settings.domain,
        unit=settings.unit,
        budget=settings.budget,
        max_rows=settings.max_rows,
        ledger=ledger,
        open_source=TableSource,
        randomness=Silence(),
    )
    assert kernel.sealed() is None
    assert kernel.sizes() == ()
    assert kernel.spent_by_partition() == [0]


def test_when_all_are_sealed_the_column_need_not_be_named(stored: Stored) -> None:
    stored.seal(3)
    assert measure(stored.kernel(), Product((AGES,))) == [18, 22, 26]


def test_rows_of_unsealed_partitions_come_and_go(stored: Stored) -> None:
    stored.seal(1)
    kernel = stored.kernel()
    assert measure(kernel, weeks(0, 2)) == [3, 5, 7]
    stored.counts[2:] += 100
    kernel.close()
    assert measure(kernel, weeks(0, 2)) == [3, 5, 7]


def test_data_are_read_again_when_more_is_sealed(stored: Stored) -> None:
    stored.seal(0)
    kernel = stored.kernel()
    measure(kernel, weeks(0, 1))
    stored.counts[1] += 100  # after the kernel has read them, and before they are sealed
    opened = stored.opened
    measure(kernel, weeks(0, 1))
    assert stored.opened == opened
    stored.seal(1)
    assert measure(kernel, weeks(1, 2)) == [103, 104, 105]
    assert stored.opened == opened + 2  # to seal, and to measure


def test_a_changed_partition_behind_a_seal_stops_the_data(stored: Stored) -> None:
    stored.seal(1)
    kernel = stored.kernel()
    stored.counts[1, 0] += 1
    with pytest.raises(SourceError, match="not the ones that were declared"):
        measure(kernel, weeks(0, 1))
    with pytest.raises(SourceError, match="not the ones that were declared"):
        stored.seal(2)
    assert kernel.sealed() == 2
    stored.declare()
    assert kernel.sealed() == 2
    assert measure(kernel, weeks(1, 2)) == [4, 4, 5]


def test_a_measurement_is_refined_after_more_was_sealed(stored: Stored) -> None:
    stored.seal(0)
    first, second = stored.kernel(), stored.kernel()
    measure(second, weeks(0, 1))
    stored.seal(1)
    record, _ = first.measure(weeks(1, 2), EIGHT, analyst="ana", purpose=Purpose("", "test"), at_most=2**60)
    finer = Noise(kind=NoiseKind.LAPLACE, scale=4.0)
    facts = {"before": EIGHT, "analyst": "ana", "purpose": Purpose("", "test"), "at_most": 2**60}
    refined, _ = second.refine(record.position, [0, 2], finer, **facts)
    assert refined.values.tolist() == [3, 5]


def test_what_is_sealed_is_compared_under_the_lock(stored: Stored) -> None:
    """As if a kernel had read counts of partitions that its log does not know as sealed."""
    stored.seal(0)
    kernel = stored.kernel()
    version, tables = kernel._opened()
    tables.sealed = 4
    kernel._opened = lambda: (version, tables)  # type: ignore[method-assign]
    with pytest.raises(QueryError, match="not sealed"):
        measure(kernel, weeks(0, 2))
    assert kernel.spent() == 0


# -- the data owner ----------------------------------------------------------------------------------------------------


def test_sizes_are_in_the_log_only_where_they_are_public() -> None:
    for neighbours, sizes in ((Neighbours.ADD_REMOVE, ()), (Neighbours.REPLACE_ONE, (3, 12, 21))):
        stored = Stored(neighbours)
        stored.declare(through=0)
        stored.seal(2)
        kernel = stored.kernel()
        assert (kernel.sealed(), kernel.sizes()) == (3, sizes)
        events = [record.event for record in stored.ledger.records() if isinstance(record.event, Sealed)]
        assert [event.through for event in events] == [0, 2]
        assert [event.sizes for event in events] == ([(3,), (12, 21)] if sizes else [None, None])


def test_a_new_version_keeps_what_is_sealed(stored: Stored) -> None:
    stored.seal(1)
    stored.counts = stored.counts + 1
    assert stored.declare(same_rows=True) == 2
    kernel = stored.kernel()
    assert (kernel.version(), kernel.sealed()) == (2, 2)
    assert measure(kernel, weeks(0, 1)) == [1, 2, 3]
    assert stored.declare(through=3) == 3
    assert kernel.sealed() == 4


def test_sealing_twice_writes_nothing(stored: Stored) -> None:
    assert stored.seal(2) == 3
    records, opened = len(stored.ledger.records()), stored.opened
    assert stored.seal(2) == stored.seal(0) == 3
    assert (len(stored.ledger.records()), stored.opened) == (records, opened)


def test_there_are_only_so_many_partitions(stored: Stored) -> None:
    with pytest.raises(ConfigError, match="none with number 4"):
        stored.seal(4)
    assert stored.kernel().sealed() == 0


def test_nothing_is_sealed_before_data_are_declared() -> None:
    with pytest.raises(SourceError, match="no version"):
        Stored().seal(0)


def overtaken(stored: Stored, by: Callable[[], object]) -> int:
    """Seal the first two partitions, while somebody else does something after the data were read."""
    commit, calls = stored.ledger.commit, 0

    def slow(work: Callable[[Transaction], object]) -> object:
        nonlocal calls
        calls += 1
        if calls == 2:  # the first commit reads the key
            by()
        return commit(work)

    stored.ledger.commit = slow  # type: ignore[method-assign]
    return stored.seal(1)


def test_two_owners_who_seal_the_same(stored: Stored) -> None:
    assert overtaken(stored, lambda: stored.seal(2)) == 3
    assert stored.kernel().sealed() == 3


@pytest.mark.parametrize("other", ["declares", "seals less"])
def test_an_owner_who_is_overtaken_looks_again(stored: Stored, other: str) -> None:
    by = (lambda: stored.declare()) if other == "declares" else (lambda: stored.seal(0))
    with pytest.raises(LedgerError, match="seal again"):
        overtaken(stored, by)
    assert stored.kernel().sealed() == (0 if other == "declares" else 1)

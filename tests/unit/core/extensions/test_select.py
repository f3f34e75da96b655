"""The verb `select`: what it picks by, what it records and charges, and what it refuses before data are touched."""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b
from typing import Any

import numpy as np
import pytest

from bursar.core.accounting import Measured, Noise, NoiseKind, Selected
from bursar.core.accounts import Charge
from bursar.core.budget import Budget
from bursar.core.domain import Domain, IntegerRange, Neighbours, Unit
from bursar.core.extensions import select as select_room
from bursar.core.extensions.curator import declare_version, seal
from bursar.core.extensions.partitions import PartitionAxis
from bursar.core.kernel import Kernel
from bursar.core.ledger import MemoryLedger, Purpose, Record
from bursar.core.ledger.ledger import Hold
from bursar.core.ledger.record_codec import decode_hold, decode_record, encode_hold, encode_record
from bursar.core.noise.system import SystemRandomness
from bursar.core.queries import LinearMap, Mask, Predicate, Product, Stack, Steps, Thresholds, Within
from bursar.core.source import source as source_room
from bursar.errors import BudgetError, LedgerError, QueryError, SourceError, Stale, Unsupported
from bursar.planner.grant import Grant
from bursar.report.status import log_lines
from bursar.session import Bursar
from harness.cells import coefficients
from harness.kernels import history
from harness.small import DOMAIN, Silence, TableSource, charter, config, counts, engine

ONE = 2**50
PLENTY = 2**60


def histogram(*names: str) -> Product:
    return Product(tuple(Mask((name,), DOMAIN.sizes((name,)), Steps.identity(DOMAIN[name].size)) for name in names))


MARGINALS = Stack((histogram("age"), histogram("sex", "region")))
TRUTH = coefficients(MARGINALS, DOMAIN) @ counts().ravel()
NOTHING = np.zeros(MARGINALS.rows, np.int64)


class Told(Silence):
    """Picks the largest scores, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[Any], int, float]] = []

    def select(self, scores: np.ndarray, *, count: int, scale: float) -> np.ndarray:
        self.asked.append((scores.tolist(), count, scale))
        return super().select(scores, count=count, scale=scale)


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def db(told: Told) -> Bursar:
    return engine(settings=config(budget=Budget.of(epsilon=4.0)), randomness=told)


def selected(kernel: Kernel, candidates: LinearMap = MARGINALS, estimates: Any = NOTHING, **rest: Any) -> Record:
    facts = {"count": 2, "scale": 16.0, "analyst": "ana", "purpose": Purpose("why", "test"), "at_most": PLENTY, **rest}
    return kernel.select(candidates, estimates, **facts)[0]


def test_rows_are_picked_by_their_distance_from_the_estimates(db: Bursar, told: Told) -> None:
    estimates = TRUTH + np.array([3, -9, 4, 0, 0, 0, 0, 0, 0, 0, -5, 8, 0, 0, 0, 0])
    record = selected(db.kernel, estimates=estimates, count=3, barred=np.array([11, 2, 11]))
    assert told.asked == [([3, 9, -1, 0, 0, 0, 0, 0, 0, 0, 5, -1, 0, 0, 0, 0], 3, 16.0)]
    assert record.values.tolist() == [1, 10, 0]
    assert encode_record(record) == encode_record(db.ledger.records()[-1])


def test_the_record_has_digests_of_what_was_given(db: Bursar) -> None:
    estimates = NOTHING + 7
    event = selected(db.kernel, estimates=estimates, barred=np.array([5, 1, 5])).event
    assert isinstance(event, Selected)
    assert event.estimates == blake2b(estimates.astype("<i8").tobytes(), digest_size=16).hexdigest()
    assert event.barred == blake2b(np.array([1, 5], "<i8").tobytes(), digest_size=16).hexdigest()
    assert (event.candidates.digest, event.count, event.scale, event.version) == (MARGINALS.digest, 2, 16.0, 1)
    assert len(encode_record(db.ledger.records()[-1])) < 400


def test_it_costs_what_its_event_says(db: Bursar) -> None:
    plan = Selected(candidates=MARGINALS, count=2, scale=16.0, version=1)
    assert db.kernel.price([plan]) == ONE // 4
    with Grant(db.kernel, "ana", "why", (plan,), PLENTY) as grant:
        grant.select(MARGINALS, NOTHING, count=2, scale=16.0)
    assert grant.charged == Charge(total=ONE // 4, account=ONE // 4)
    assert db.kernel.spent() == ONE // 4
    (line,) = log_lines(history(db.kernel), {})[1:]
    assert (line.kind, line.rows, line.noise, line.charge) == ("selected", 2, "gumbel 16", 0.25)
    (columns,), (way,) = db.spending().by_columns, db.spending().by_way
    assert (columns.name, columns.charge) == ("age, sex, region", 0.25)
    assert (way.name, way.charge) == ("choices of what to measure", 0.25)


def test_joint_picks_of_an_old_ledger_keep_their_price(db: Bursar) -> None:
    """Nothing draws them any more: 4/g for five rows, and not five times 2/g."""
    joint = Selected(candidates=MARGINALS, count=5, scale=16.0, version=1, joint=True)
    facts: Any = {"analyst": "ana", "purpose": Purpose("why", "test"), "values": np.arange(5)}
    db.ledger.commit(lambda transaction: transaction.append(event=joint, **facts))
    assert db.kernel.spent() == db.kernel.price([joint]) == ONE // 4
    selected(db.kernel)
    assert db.kernel.spent() == ONE // 2
    assert [(line.rows, line.noise) for line in log_lines(history(db.kernel), {})[1:]] == [
        (5, "jointly 16"),
        (2, "gumbel 16"),
    ]


def test_the_arrays_given_may_change_afterwards(db: Bursar, told: Told) -> None:
    """What is used is a copy, and what was given is left alone."""
    estimates, barred = TRUTH.copy(), np.array([3, 0])
    selected(db.kernel, estimates=estimates, barred=barred)
    assert np.array_equal(estimates, TRUTH)
    assert barred.tolist() == [3, 0]
    estimates.setflags(write=False)
    assert len(selected(db.kernel, estimates=estimates).values) == 2
    assert told.asked[1][0] == [0] * 16


def test_counted_tables_are_left_alone(db: Bursar) -> None:
    for _ in range(2):
        selected(db.kernel, histogram("age", "sex", "region"), np.zeros(60, np.int64), barred=np.arange(9))
    record, _ = db.kernel.measure(
        histogram("age", "sex", "region"),
        Noise(kind=NoiseKind.LAPLACE, scale=8.0),
        analyst="ana",
        purpose=Purpose("", "test"),
        at_most=PLENTY,
    )
    assert np.array_equal(record.values, counts().ravel())


def test_a_plan_of_several_verbs(db: Bursar) -> None:
    noise = Noise(kind=NoiseKind.LAPLACE, scale=16.0)
    plan = (
        Selected(candidates=MARGINALS, count=2, scale=16.0, version=1),
        Measured(strategy=MARGINALS, noise=noise, version=1),
    )
    with Grant(db.kernel, "ana", "why", plan, PLENTY) as grant:
        with pytest.raises(Stale, match="not part of the plan"):
            grant.select(MARGINALS, NOTHING, count=3, scale=16.0)
        assert grant.select(MARGINALS, NOTHING + 5, count=2, scale=16.0).position == 2
        with pytest.raises(Stale, match="not part of the plan"):
            grant.select(MARGINALS, NOTHING, count=2, scale=16.0)
        grant.measure(MARGINALS, noise)


def test_too_dear(db: Bursar, told: Told) -> None:
    with pytest.raises(BudgetError):
        selected(db.kernel, count=16, scale=1.0)
    with pytest.raises(Stale, match="risen"):
        selected(db.kernel, at_most=10)
    assert told.asked == []
    assert len(db.ledger.records()) == 1


def test_all_rows_that_are_left(db: Bursar) -> None:
    record = selected(db.kernel, count=14, scale=100.0, barred=np.array([0, 15]))
    assert sorted(record.values.tolist()) == list(range(1, 15))


def other_thresholds() -> Thresholds:
    return Thresholds(("age", "sex"), (10, 2), 1)


def test_thresholds_as_candidates(db: Bursar) -> None:
    record = selected(db.kernel, Stack((other_thresholds(), histogram("age"))), np.zeros(30, np.int64))
    assert len(record.values) == 2
    assert db.kernel.spent() == ONE // 4


REFUSED: dict[str, dict[str, Any]] = {
    "a scale of zero": {"scale": 0.0},
    "a negative scale": {"scale": -4.0},
    "a scale that is no float": {"scale": 4},
    "no picks": {"count": 0},
    "more picks than rows": {"count": 17},
    "more picks than rows left": {"count": 16, "barred": np.array([3])},
    "estimates of another length": {"estimates": NOTHING[:-1]},
    "estimates in a table": {"estimates": NOTHING.reshape(4, 4)},
    "estimates that are no whole numbers": {"estimates": NOTHING * 1.0},
    "estimates of fewer bits": {"estimates": NOTHING.astype(np.int32)},
    "estimates that are too large": {"estimates": NOTHING + 2**61 + 1},
    "estimates that are too small": {"estimates": NOTHING - 2**61 - 1},
    "barred rows that are no whole numbers": {"barred": np.array([0.5])},
    "barred rows below": {"barred": np.array([-1])},
    "barred rows beyond": {"barred": np.array([16])},
    "columns of another size": {
        "candidates": Stack((*MARGINALS.parts, Product((Mask(("sex",), (3,), Steps.identity(3)),)))),
        "estimates": np.zeros(19, np.int64),
    },
    "entries that are too large": {
        "candidates": Product((Mask(("sex",), (2,), Steps.dense([[2**50, 0]])),)),
        "estimates": np.zeros(1, np.int64),
        "count": 1,
    },
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused_before_the_data_are_touched(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    db = engine()
    monkeypatch.setattr(Kernel, "_opened", lambda self: pytest.fail("the data were touched"))
    with pytest.raises(QueryError):
        selected(db.kernel, **REFUSED[name])
    assert len(db.ledger.records()) == 1


def test_other_kinds_of_candidates_are_refused(db: Bursar) -> None:
    predicate = Predicate(("age",), (10,), Within("age", ((0, 3),)))
    with pytest.raises(Unsupported, match="Predicate"):
        selected(db.kernel, predicate, np.zeros(1, np.int64), count=1)


def test_the_largest_estimates(db: Bursar, told: Told) -> None:
    ends = np.where(np.arange(16) % 2, 2**61, -(2**61))
    selected(db.kernel, estimates=ends)
    assert told.asked[0][0] == np.abs(TRUTH - ends).tolist()


def test_more_candidates_than_rows_of_a_measurement(db: Bursar, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_room, "MOST_ROWS", 10)
    assert select_room.MOST_CANDIDATES > 4_426_004  # the marginals of 64 sets of three columns of Adult
    assert len(selected(db.kernel).values) == 2
    monkeypatch.setattr(select_room, "MOST_CANDIDATES", 15)
    with pytest.raises(QueryError, match="16 numbers at once; 15"):
        selected(db.kernel)


def test_a_version_that_is_declared_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    db = engine()
    monkeypatch.setattr(db.kernel, "version", lambda: 0)
    with pytest.raises(Stale, match="version changed"):
        selected(db.kernel)


def test_a_source_that_fails(db: Bursar, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: TableSource, attrs: tuple[str, ...]) -> np.ndarray:
        raise SourceError("the data could not be counted")

    monkeypatch.setattr(TableSource, "table", fails)
    with pytest.raises(SourceError):
        selected(db.kernel)
    assert len(db.ledger.records()) == 1


def test_partitions_that_are_not_sealed_are_not_looked_at() -> None:
    day = IntegerRange(name="day", lower=0, upper=2, null=0)
    domain = Domain((*DOMAIN.attributes[:1], day), partition="day")
    table = np.random.default_rng(1).integers(0, 9, (10, 3))
    settings = config(domain=domain, unit=Unit(neighbours=Neighbours.ADD_REMOVE))
    ledger = MemoryLedger(charter(settings))
    axis = PartitionAxis.of(domain, settings.unit)
    assert axis is not None

    def source(key: bytes) -> TableSource:
        return TableSource(table, domain)

    declare_version(ledger, source, SystemRandomness(), axis=axis)
    seal(ledger, source, axis=axis, through=0)
    kernel = Kernel(
        domain=domain,
        unit=settings.unit,
        budget=settings.budget,
        max_rows=settings.max_rows,
        ledger=ledger,
        open_source=source,
        randomness=Silence(),
    )
    ages, days = Steps.identity(10), Steps.identity(3)
    whole = Product((Mask(("age",), (10,), ages),))
    with pytest.raises(QueryError, match="not sealed"):
        selected(kernel, whole, np.zeros(10, np.int64), count=1)
    first = Product((*whole.masks, Mask(("day",), (3,), days.take([0]))))
    assert selected(kernel, first, np.zeros(10, np.int64), count=1).values.tolist() == [int(table[:, 0].argmax())]


# -------------------------------------------------------------------------------------------------- as bytes

EVENT = Selected(candidates=MARGINALS, count=2, scale=0.3, version=4, estimates="ab" * 16, barred="")


def stored(event: Selected = EVENT, values: tuple[int, ...] = (9, 2)) -> bytes:
    record = Record(
        position=1, at=2.0, analyst="ann", question="why", proposer="", run=0, event=event, values=np.array(values)
    )
    return encode_record(record)


def test_a_record_is_read_back() -> None:
    assert EVENT.stored is MARGINALS
    found = decode_record(1, stored(), lambda digest: {MARGINALS.digest: MARGINALS}[digest])
    assert isinstance(found.event, Selected)
    assert {**vars(found.event)} == {**vars(EVENT)}
    assert found.values.tolist() == [9, 2]
    text = stored().split(b"\n")[0]
    assert text == (
        b'{"analyst":"ann","at":2.0,"barred":"","count":2,"estimates":"%b","kind":"selected","proposer":"",'
        b'"question":"why","run":0,"scale":"0x1.3333333333333p-2","strategy":"%b","version":4}'
        % (b"ab" * 16, MARGINALS.digest.encode())
    )


def test_a_joint_record_is_of_another_kind() -> None:
    """So that a release that knows no joint selections refuses it."""
    joint = replace(EVENT, joint=True)
    body = stored(joint)
    assert body == stored().replace(b'"kind":"selected"', b'"kind":"jointly selected"')
    found = decode_record(1, body, lambda digest: MARGINALS)
    assert {**vars(found.event)} == {**vars(joint)}


@pytest.mark.parametrize("event", [EVENT, replace(EVENT, joint=True)])
def test_a_hold_is_read_back(event: Selected) -> None:
    hold = Hold(fence=3, analyst="ann", expires=9.5, events=(event,))
    found = decode_hold(encode_hold(hold), lambda digest: MARGINALS)
    assert vars(found.events[0]) == vars(event)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"count":2', b'"count":3'),
        (b'"count":2', b'"count":2.0'),
        (b'"count":2', b'"count":true'),
        (b'"0x1.3333333333333p-2"', b'"-0x1p0"'),
        (b'"0x1.3333333333333p-2"', b"1.0"),
        (b'"barred":""', b'"barred":"x"'),
        (b'"barred":""', b'"barred":7'),
        (b'"barred":""', b'"more":""'),
        (b'"barred":""', b'"barred":"","joint":true'),
        (b'"version":4', b'"version":"4"'),
    ],
)
def test_a_damaged_record_is_refused(old: bytes, new: bytes) -> None:
    body = stored()
    assert old in body
    with pytest.raises(LedgerError):
        decode_record(1, body.replace(old, new), lambda digest: MARGINALS)

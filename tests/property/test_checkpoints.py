"""A checkpoint at any position and the records after it add up to what the whole log adds up to, integer by integer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from bursar.core.accounting import Carried, Measured, Noise, NoiseKind, Opened
from bursar.core.budget import Budget
from bursar.core.domain import Domain, Neighbours, Unit
from bursar.core.extensions import charges
from bursar.core.extensions.charges import question_key, subject_of
from bursar.core.extensions.checkpoint import Checkpointed, nothing_read, restore
from bursar.core.extensions.curator import declare_version, seal
from bursar.core.extensions.partitions import PartitionAxis
from bursar.core.extensions.saved_state import decode_tree, encode_tree
from bursar.core.extensions.shares import REST
from bursar.core.kernel import Kernel
from bursar.core.ledger import MemoryLedger, Purpose, Record
from bursar.core.public import Public
from bursar.core.queries import LinearMap, Mask, Product, Stack, Steps
from bursar.errors import AnalystError, BudgetError, Stale
from bursar.planner.grant import Grant
from harness.kernels import history
from harness.maps import domain_of
from harness.small import Silence, TableSource, charter, config

PEOPLE = ("ann", "bob", "cat")
PLENTY = 2**60
PLAIN = domain_of(age=6, sex=2, week=4)
PARTED = Domain(PLAIN.attributes, partition="week")
LONG = 18
"""Steps of a session: enough for every kind of event to occur in one of them."""
SETTINGS: dict[str, dict[str, Any]] = {
    "pure": {"budget": Budget.of(epsilon=60.0)},
    "rho": {"budget": Budget.of(rho=60.0)},
    "replaced": {
        "budget": Budget.of(epsilon=60.0),
        "unit": Unit(neighbours=Neighbours.REPLACE_ONE),
        "public_size": 300,
    },
    "parted": {"domain": PARTED, "budget": Budget.of(epsilon=60.0)},
    "parted and replaced": {
        "domain": PARTED,
        "budget": Budget.of(epsilon=60.0),
        "unit": Unit(neighbours=Neighbours.REPLACE_ONE),
        "public_size": 300,
    },
    "several rows": {"budget": Budget.of(rho=60.0), "unit": Unit(column="id", max_contributions=3)},
}


def steps(rng: np.random.Generator, size: int) -> Steps:
    if rng.random() < 0.3:
        return Steps.identity(size)
    low = int(rng.integers(0, size))
    return Steps.ranges([low], [int(rng.integers(low + 1, size + 1))], size)


def strategy(rng: np.random.Generator, domain: Domain) -> LinearMap:
    names = [name for name in domain.names if rng.random() < 0.6]
    product = Product(tuple(Mask((name,), domain.sizes((name,)), steps(rng, domain[name].size)) for name in names))
    if rng.random() < 0.2:
        return Stack((product, Product((Mask(("sex",), (2,), Steps.identity(2)),))))
    return product


class Session:
    """A log of every kind of event, made by the verbs themselves."""

    def __init__(self, seed: int, **settings: Any) -> None:
        self.rng = np.random.default_rng(seed)
        facts: dict[str, Any] = {"domain": PLAIN, **settings}
        self.settings = config(**facts)
        self.domain: Domain = self.settings.domain
        table = self.rng.integers(0, 9, self.domain.sizes(self.domain.names))
        self.open_source: Callable[[bytes], TableSource] = lambda key: TableSource(table.copy(), self.domain)
        carried = Carried(units=2**50 + seed, delta=5, ledger="ab" * 32, onward=False)
        self.ledger = MemoryLedger(charter(self.settings), carried=carried)
        self.axis = PartitionAxis.of(self.domain, self.settings.unit)
        self.declare()
        self.kernel = self.opened()

    def opened(self) -> Kernel:
        parts = {"domain": self.domain, "unit": self.settings.unit, "budget": self.settings.budget, "max_rows": 100_000}
        return Kernel(**parts, ledger=self.ledger, open_source=self.open_source, randomness=Silence())

    def declare(self, **options: Any) -> None:
        last = -1 if self.axis is None else 1
        declare_version(self.ledger, self.open_source, Silence(), axis=self.axis, through=last, **options)

    def go_on(self, steps: int) -> None:
        kinds = [self.measure] * 6 + [self.refine] * 4 + [self.test] * 2 + [self.select, self.allot, self.next]
        for _ in range(steps):
            with suppress(Stale, BudgetError, AnalystError):
                kinds[int(self.rng.integers(len(kinds)))]()

    def who(self) -> str:
        return PEOPLE[int(self.rng.integers(len(PEOPLE)))]

    def terms(self) -> dict[str, Any]:
        return {"analyst": self.who(), "purpose": Purpose("why", "test"), "at_most": PLENTY}

    def noise(self) -> Noise:
        pure = self.settings.budget.mode.value == "epsilon"
        return Noise(kind=NoiseKind.LAPLACE if pure else NoiseKind.GAUSSIAN, scale=float(self.rng.integers(8, 64)))

    def asked(self) -> LinearMap:
        made = strategy(self.rng, self.domain)
        if self.axis is None:
            return made
        weeks = Mask(("week",), (4,), Steps.ranges([0], [int(self.rng.integers(1, 3))], 4))
        parts = made.parts if isinstance(made, Stack) else (made,)
        one = [
            mask for part in parts[:1] if isinstance(part, Product) for mask in part.masks if mask.attrs != ("week",)
        ]
        return Product((*one, weeks))

    def measure(self) -> None:
        self.kernel.measure(self.asked(), self.noise(), **self.terms())

    def refine(self) -> None:
        blocks = [record for record in self.ledger.records() if isinstance(record.event, Measured)]
        if self.settings.budget.mode.value != "epsilon" or not blocks:
            return
        block = blocks[int(self.rng.integers(len(blocks)))]
        rows = np.flatnonzero(self.rng.random(len(block.values)) < 0.7)
        scales, _ = self.kernel._blocks._present(block.position)
        before = scales[rows[0]] if len(rows) else 1.0
        rows = rows[scales[rows] == before]
        laws = [Noise(kind=NoiseKind.LAPLACE, scale=float(scale)) for scale in (before, before / 2)]
        if len(rows):
            self.kernel.refine(block.position, rows.tolist(), laws[1], before=laws[0], **self.terms())

    def test(self) -> None:
        scope = Product((Mask(("age",), (6,), steps(self.rng, 6).take([0])),))
        if self.axis is not None:
            scope = Product((*scope.masks, Mask(("week",), (4,), Steps.ranges([0], [1], 4))))
        laws = {
            "threshold": Noise(kind=NoiseKind.LAPLACE, scale=64.0),
            "test": Noise(kind=NoiseKind.LAPLACE, scale=64.0),
        }
        event = Opened(scope=scope, cut=10, version=self.kernel.version(), **laws)
        with Grant(self.kernel, self.who(), "why", (event,), PLENTY) as allowed:
            allowed.above(event, scope, 0 if self.rng.random() < 0.5 else int(self.kernel._answers(event, scope)[0]))

    def select(self) -> None:
        candidates = Product((Mask(("age",), (6,), Steps.identity(6)),))
        if self.axis is not None:
            candidates = Product((*candidates.masks, Mask(("week",), (4,), Steps.ranges([0], [1], 4))))
        self.kernel.select(candidates, np.zeros(6, np.int64), count=2, scale=64.0, **self.terms())

    def allot(self) -> None:
        some = [name for name in PEOPLE if self.rng.random() < 0.7]
        self.kernel.allot({name: Fraction(int(self.rng.integers(20, 34)), 100) for name in some})

    def next(self) -> None:
        if self.axis is None or self.rng.random() < 0.5:
            self.declare(same_rows=bool(self.rng.random() < 0.5))
        else:
            seal(self.ledger, self.open_source, axis=self.axis, through=int(self.rng.integers(1, 4)))


def replayed(kernel: Kernel, records: list[Record]) -> Public:
    twin = nothing_read(kernel)
    twin._advance(records)
    return twin


def resumed(kernel: Kernel, records: list[Record], position: int) -> Public:
    """From the bytes of the state at a position, and the records after it."""
    state = decode_tree(encode_tree(replayed(kernel, records[:position]).state()))
    twin = nothing_read(kernel)
    restore(twin, state)
    twin._advance(records[position:])
    return twin


def told(public: Public, asked: list[Measured]) -> list[object]:
    """Everything that is decided by: what is spent, and what questions would cost whom."""
    accounts = public._accounts
    more = [public._accountant.footprints(event) for event in asked]
    prices = [accounts.price(name, each) for name in (*PEOPLE, REST) if name in accounts.shares for each in more]
    prices += [accounts.total.spent(each) for each in more]
    by_partition = accounts.total.spent_by_partition()
    open_ = sorted(public._vectors.opened)
    return [accounts.spent(), by_partition, prices, dict(accounts.shares), open_, vars(public._seals), public._version]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("setting", SETTINGS)
def test_at_every_position_it_is_what_the_whole_log_adds_up_to(setting: str, seed: int) -> None:
    session = Session(seed, **SETTINGS[setting])
    session.go_on(LONG)
    kernel, records = session.kernel, list(session.ledger.records())
    version = kernel.version()
    asked = [Measured(strategy=session.asked(), noise=session.noise(), version=version) for _ in range(6)]
    whole = replayed(kernel, records)
    expected, told_by_all = encode_tree(whole.state()), told(whole, asked)
    new = {"bob": Fraction(1, 2), "dan": Fraction(1, 3)}
    for position in range(len(records) + 1):
        twin = resumed(kernel, records, position)
        assert encode_tree(twin.state()) == expected
        assert told(twin, asked) == told_by_all
        for public in (whole, twin):  # the shares of everybody are worked out anew, from the analysts of the whole log
            public._accounts = public._accounts.copy()
            public._accounts.shares, public._accounts.books = dict(new), {}
        assert encode_tree(twin._accounts.state()) == encode_tree(whole._accounts.state())
        whole = replayed(kernel, records)


def charged(public: Public) -> list[tuple[object, ...]]:
    """The rows that reports are made of, with names instead of numbers."""
    log = public.charged()
    columns = [log.column(name).tolist() for name in ("total", "account", "question", "analyst", "proposer", "subject")]
    return [
        (total, account, at, tuple(question), log.analysts[who], log.proposers[by], log.subjects[what])
        for at, total, account, question, who, by, what in zip(log.times().tolist(), *columns, strict=True)
    ]


def played_again(kernel: Kernel) -> list[tuple[object, ...]]:
    """The same from the whole log, record by record."""
    return [
        (*charge, each.at, question_key(each.question), each.analyst, each.proposer, subject_of(each.event))
        for each, charge in history(kernel)
    ]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("setting", SETTINGS)
def test_at_every_position_reports_have_the_charges_of_the_whole_log(
    setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(charges, "BLOCK", 4)
    session = Session(3, **SETTINGS[setting])
    session.go_on(LONG)
    session.kernel.allot(dict.fromkeys(PEOPLE, Fraction(3, 10)))
    session.go_on(LONG)
    kernel, records = session.kernel, list(session.ledger.records())
    expected = played_again(kernel)
    assert any(row[0] != row[1] for row in expected)  # accounts are charged otherwise than the data set
    replayed(kernel, records)._charges.save_in(session.ledger)
    for position in range(len(records) + 1):
        twin = resumed(kernel, records, position)
        rows = twin._charges.read(session.ledger)
        assert rows is not None  # nothing is played again
        assert len(rows) == len(records)
        assert charged(twin) == expected


def test_rows_that_the_log_does_not_vouch_for_are_played_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charges, "BLOCK", 4)
    session = Session(5, **SETTINGS["pure"])
    session.go_on(LONG)
    session.kernel.checkpoint()
    session.go_on(LONG)
    session.kernel.checkpoint()
    ledger, expected = session.ledger, played_again(session.kernel)
    good = ledger.saved(charges.SAVED_ROWS) or b""
    assert len(good) >= 2 * 4 * charges.ROW.itemsize
    for place in range(0, len(good), 131):
        ledger.save(charges.SAVED_ROWS, good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        begun = session.opened()
        assert begun.begun > 0
        assert begun._charges.read(ledger) is None
    assert charged(begun) == expected
    begun.checkpoint()  # puts right what is beside the log
    assert ledger.saved(charges.SAVED_ROWS) == good
    for other in (b"", good[:-1], good[: 4 * charges.ROW.itemsize]):
        ledger.save(charges.SAVED_ROWS, other)
        assert charged(session.opened())[: len(expected)] == expected


def test_no_price_reads_the_rows() -> None:
    session = Session(2, **SETTINGS["pure"])
    session.go_on(LONG)
    kernel = session.kernel
    asked = [Measured(strategy=session.asked(), noise=session.noise(), version=kernel.version()) for _ in range(6)]
    before = told(kernel, asked)
    kernel._charges = charges.Charges(digest=b"nonsense", last=[(2**60, 2**60, 0.0, (0, 0), 0, 0, 0)] * 3)
    kernel._accounts.total.last_spent = None
    assert told(kernel, asked) == before


def test_the_log_has_every_kind_of_event_that_a_checkpoint_must_know() -> None:
    kinds = set()
    for setting in SETTINGS.values():
        for seed in range(3):
            session = Session(seed, **setting)
            session.go_on(LONG)
            kinds |= {record.event.kind for record in session.ledger.records()}
    assert kinds >= {"measured", "refined", "opened", "failed", "selected", "allotted", "versioned", "sealed"}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_kernel_that_begins_at_a_checkpoint_goes_on_like_one_that_read_everything(setting: str) -> None:
    session = Session(7, **SETTINGS[setting])
    for _ in range(5):
        session.go_on(8)
        session.kernel.checkpoint()
        session.go_on(3)  # the tail, which is read
        begun = session.kernel = session.opened()
        last = [record.event for record in session.ledger.records() if isinstance(record.event, Checkpointed)][-1]
        assert begun._checkpointed == last.position
        begun._advanced()
        whole = replayed(begun, list(session.ledger.records()))
        assert encode_tree(begun.state()) == encode_tree(whole.state())


def test_what_is_pending_is_in_no_checkpoint() -> None:
    """A group that failed leaves a copy of the accounts behind, with records that were never durable."""
    session = Session(1, **SETTINGS["pure"])
    kernel = session.kernel
    event = Measured(strategy=Product(()), noise=session.noise(), version=1)
    medium = session.ledger._medium

    def work(transaction: Any) -> None:
        facts = {"analyst": "ann", "purpose": Purpose("why", "test")}
        transaction.append(**facts, event=event, values=np.zeros(1, np.int64))
        kernel._accounts_with(transaction)
        raise Stale("it was not to be")

    with pytest.raises(Stale):
        session.ledger.commit(work)
    assert not medium.pending()
    kernel.checkpoint()
    begun = session.opened()
    assert begun._checkpointed == 2
    assert begun.spent() == replayed(begun, list(session.ledger.records())).spent() == begun.carried() > 0


def test_a_twin_that_forgets_the_last_record_is_told_apart() -> None:
    session = Session(2, **SETTINGS["pure"])
    for _ in range(4):
        session.measure()
    kernel, records = session.kernel, list(session.ledger.records())
    state = replayed(kernel, records[:-1]).state()
    short = nothing_read(kernel)
    restore(short, [len(records), *decode_tree(encode_tree(state))[1:]])  # says that it goes further than it does
    assert encode_tree(short.state()) != encode_tree(replayed(kernel, records).state())

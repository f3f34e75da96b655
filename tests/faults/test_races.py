"""Many clients at once: a budget for 200 grants exactly 200, threads or processes; holds and leases keep others out."""

from __future__ import annotations

import itertools
import math
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bursar import engine as engine_module
from bursar.core.accounting import Measured, Noise, NoiseKind
from bursar.core.accounts import Charge
from bursar.core.kernel import Kernel
from bursar.core.ledger import Record, SqliteLedger
from bursar.core.ledger.database_ledger import BUSY_TIMEOUT
from bursar.core.queries import LinearMap
from bursar.errors import BudgetError, LedgerError
from bursar.estimation.estimate import Estimate, IndependentRows
from bursar.planner.choose import Preset
from bursar.planner.goals import Wanted
from bursar.planner.grant import HOLD_SECONDS, Verbs
from bursar.planner.offer import Offer, Price, Proposer, Views
from bursar.planner.request import PlanningRequest
from bursar.session import Bursar
from harness.faults import KILLED, Clock, die, exit_code, found, later, loss, reopened, run, start
from harness.patience import PATIENCE
from harness.racing import CLIENTS, EPSILON, GRANTS, PRICE, TEXT, client, clients
from harness.small import TableSource


@pytest.fixture
def place(tmp_path: Path) -> Path:
    made = tmp_path / "people.bursar" / "ledger.sqlite"
    found(made, EPSILON)
    return made


# -- a budget for 200 ---------------------------------------------------------------------------------------


@contextmanager
def watched(place: Path) -> Iterator[list[int]]:
    """What another process would see as spent, all the time while the block runs."""
    seen: list[int] = []
    begun, over = threading.Event(), threading.Event()

    def watch() -> None:
        with reopened(place, epsilon=EPSILON) as bursar:
            while not over.wait(0.02):
                seen.append(bursar.kernel.spent())
                begun.set()

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        assert begun.wait(PATIENCE)
        yield seen
    finally:
        over.set()
        thread.join()


def check_all_is_granted_once(place: Path, tally: Counter[str], seen: list[int], asked: int) -> None:
    assert tally == {"granted": GRANTS, "refused": asked - GRANTS}
    with reopened(place, epsilon=EPSILON) as bursar:
        assert max(seen) <= bursar.config.budget.units
        events = [record.event for record in bursar.ledger.records()]
        assert bursar.kernel.spent() == loss(events) == bursar.config.budget.units
        assert sum(isinstance(event, Measured) for event in events) == GRANTS
        assert bursar.owner.verify().answers == GRANTS


REQUESTS = 5
"""Of each of 64 threads: more than there is budget for."""


def test_64_threads_for_200(place: Path) -> None:
    with reopened(place, preset="fixed", epsilon=EPSILON) as bursar, watched(place) as seen:
        tally = clients(bursar, "thread", CLIENTS, REQUESTS)
    check_all_is_granted_once(place, tally, seen, CLIENTS * REQUESTS)


def many_clients(place: Path, name: str, threads: int, requests: int) -> None:
    """With the patience that users have: nobody may be left waiting so long that they give up."""
    with reopened(place, preset="fixed", epsilon=EPSILON, patience=BUSY_TIMEOUT) as bursar:
        tally = clients(bursar, name, threads, requests)
    (place.parent / f"tally {name}").write_text(f"{tally['granted']} {tally['refused']}")


@pytest.mark.parametrize(("processes", "threads"), [(4, 8), pytest.param(16, 4, marks=pytest.mark.heavy)])
def test_processes_of_several_threads_for_200(place: Path, processes: int, threads: int) -> None:
    with watched(place) as seen:
        children = [start(many_clients, place, f"process {number}", threads, 8) for number in range(processes)]
        assert [exit_code(child) for child in children] == [0] * processes
    tallies = [file.read_text().split() for file in place.parent.glob("tally *")]
    granted, refused = (sum(int(tally[which]) for tally in tallies) for which in (0, 1))
    check_all_is_granted_once(place, Counter(granted=granted, refused=refused), seen, processes * threads * 8)


class Unsteady(sqlite3.Connection):
    """Every fifth commit fails."""

    commits = itertools.count(1)

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        if sql == "COMMIT" and next(self.commits) % 5 == 0:
            raise sqlite3.OperationalError("disk I/O error")
        return super().execute(sql, *parameters)


def stubborn_client(bursar: Bursar, requests: int) -> Counter[str]:
    """Asks without a key, and again where the ledger failed."""
    tally: Counter[str] = Counter()
    while tally["granted"] + tally["refused"] < requests:
        try:
            bursar.query(TEXT, epsilon=1)
            tally["granted"] += 1
        except BudgetError:
            tally["refused"] += 1
        except LedgerError:
            tally["failed"] += 1
    return tally


@pytest.mark.heavy
def test_groups_that_fail_give_everything_back(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a failed commit had admitted was never spent: all of the 200 are still there for others."""
    monkeypatch.setattr(SqliteLedger, "factory", Unsteady)
    with reopened(place, preset="fixed", epsilon=EPSILON) as bursar, ThreadPoolExecutor(32) as pool:
        tally = sum(pool.map(lambda _: stubborn_client(bursar, 8), range(32)), Counter())
        assert tally["failed"] > 0
        assert (tally["granted"], tally["refused"]) == (GRANTS, 56)
        events = [record.event for record in bursar.ledger.records()]
        assert bursar.kernel.spent() == loss(events) == bursar.config.budget.units


class CheckThenAct(Kernel):
    """A wrong twin: looks at the budget first, and draws and writes in a commit of its own."""

    together = threading.Barrier(CLIENTS)
    """All have checked before anybody acts, and all have acted before anybody checks again: luck has no part in it."""

    def measure(self, strategy: LinearMap, noise: Noise, **named: Any) -> tuple[Record, Charge]:
        event = Measured(strategy=strategy, noise=noise, version=self.version())
        price, left = self.price([event]), self.left()
        if price > left:
            raise BudgetError(asked=price, left=left, unit="units")
        self.together.wait(PATIENCE)
        values = np.zeros(strategy.rows, np.int64)
        text = {"analyst": named["analyst"], "purpose": named["purpose"]}
        record = self.ledger.commit(lambda t: t.append(**text, event=event, values=values))
        self.together.wait(PATIENCE)
        return record, Charge(price, price)


def test_a_kernel_that_checks_and_then_acts_grants_too_much(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "Kernel", CheckThenAct)
    with reopened(place, preset="fixed", epsilon=EPSILON) as bursar:
        tally = clients(bursar, "thread", CLIENTS, REQUESTS)
        assert tally["granted"] == math.ceil(GRANTS / CLIENTS) * CLIENTS > GRANTS
        assert bursar.kernel.spent() > bursar.config.budget.units


# -- holds --------------------------------------------------------------------------------------------------

HALF = 0.5
WHOLE = 1.0


@pytest.fixture
def one(tmp_path: Path) -> Path:
    """A ledger with a budget of 1."""
    made = tmp_path / "one.bursar" / "ledger.sqlite"
    found(made, WHOLE)
    return made


@dataclass(frozen=True)
class InTwo(Proposer):
    """A plan of two verbs that together take the whole budget; `between` happens after the first."""

    between: Callable[[], None]
    name: str = "in two"

    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
        wanted, noise = request.workload.map, Noise(kind=NoiseKind.LAPLACE, scale=1 / HALF)
        law = IndependentRows(noise=noise, rows=wanted.rows)
        events = (Measured(strategy=wanted, noise=noise, version=views.version),) * 2

        def run_both(verbs: Verbs) -> Estimate:
            first = verbs.measure(wanted, noise).values
            self.between()
            return Estimate(values=(first + verbs.measure(wanted, noise).values) / 2, law=law)

        price = Price(events=events, at_most=views.price(events))
        return [Offer(proposer=self.name, price=price, law=law, run=run_both)]


def in_two(place: Path, between: Callable[[], None]) -> Bursar:
    bursar = reopened(place, epsilon=WHOLE)
    bursar.engine.planner.preset = Preset("in two", (InTwo(between),))
    return bursar


def spent(place: Path) -> float:
    with reopened(place, epsilon=WHOLE) as bursar:
        bursar.owner.verify()
        assert bursar.kernel.spent() == loss([record.event for record in bursar.ledger.records()])
        return bursar.kernel.spent() / 2**50


def granted(place: Path, requests: int = 1) -> int:
    """How many of the requests of another process are granted."""
    with reopened(place, preset="fixed", epsilon=WHOLE) as bursar:
        return client(bursar, f"other {time.perf_counter()}", requests)["granted"]


def test_a_hold_keeps_others_out_until_its_plan_has_ended(one: Path) -> None:
    meanwhile: list[int] = []
    with in_two(one, lambda: meanwhile.append(granted(one))) as bursar:
        bursar.query(TEXT, key="plan", epsilon=1)
    assert meanwhile == [0]
    assert spent(one) == WHOLE


def test_a_plan_that_fails_gives_its_hold_back(one: Path) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    with in_two(one, fail) as bursar, pytest.raises(ZeroDivisionError):
        bursar.query(TEXT, key="plan", epsilon=1)
    assert granted(one) == 1


def die_in_the_middle(place: Path) -> None:
    with in_two(place, die) as bursar:
        bursar.query(TEXT, key="plan", epsilon=1)


@pytest.mark.heavy
def test_a_hold_of_a_dead_process_ends_with_its_lease(one: Path) -> None:
    assert run(die_in_the_middle, one) == KILLED
    assert granted(one) == 0
    with later(HOLD_SECONDS / 2):
        assert granted(one) == 0
    with later(HOLD_SECONDS + 1):
        assert granted(one, 300) == HALF / PRICE
    assert spent(one) == WHOLE


@pytest.mark.parametrize("back", [False, True], ids=["the clock goes on", "the clock goes back again"])
def test_a_commit_under_an_expired_hold_fails(one: Path, back: bool) -> None:
    clock, meanwhile = Clock(), []

    def between() -> None:
        clock.off = HOLD_SECONDS + 1
        meanwhile.append(granted(one))
        clock.off = 0 if back else clock.off

    with clock.running(), in_two(one, between) as bursar:
        with pytest.raises(BudgetError):  # Stale inside, planned again, and now the plan does not fit
            bursar.query(TEXT, key="plan", epsilon=1)
        assert bursar.budget().held == 0
    assert meanwhile == [1]
    assert spent(one) == HALF + PRICE


def test_a_thread_may_open_the_data_while_another_takes_a_hold(one: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit that waits for a thread which waits for a commit would be a standstill."""
    opening, real = threading.Event(), TableSource.content

    def content(source: TableSource, first: int | None = None) -> str:
        opening.set()
        time.sleep(0.3)  # long enough for the other thread to come into its commit
        return real(source, first)

    bursar = reopened(one, preset="fixed", epsilon=WHOLE)  # closed at the end: closing waits for commits too
    noise = Noise(kind=NoiseKind.LAPLACE, scale=512.0)
    event = Measured(strategy=bursar.engine.prepare(TEXT, Wanted(epsilon=1), None).workload.map, noise=noise, version=1)
    monkeypatch.setattr(TableSource, "content", content)
    buyer = threading.Thread(target=client, args=(bursar, "buyer", 1), daemon=True)
    buyer.start()
    assert opening.wait(PATIENCE)
    holder = threading.Thread(target=lambda: bursar.kernel.hold([event], analyst="ana", seconds=60), daemon=True)
    holder.start()
    holder.join(PATIENCE)
    buyer.join(PATIENCE)
    assert not holder.is_alive()
    assert not buyer.is_alive()
    bursar.close()

"""Who writes next to a ledger in a file: first come, first served; and a line that is lost or stuck stops nobody."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from bursar.core.accounting import Noise, NoiseKind, Versioned
from bursar.core.extensions.curator import declare_version
from bursar.core.ledger import Purpose, SqliteLedger, Transaction, write_order
from bursar.core.ledger.sqlite import SqliteConnection
from bursar.core.ledger.write_order import WriteOrder
from bursar.core.noise.law import to_units
from bursar.core.noise.system import SystemRandomness
from bursar.core.queries import Product
from bursar.errors import BudgetError, LedgerError
from bursar.session import Bursar
from harness.faults import start
from harness.patience import PATIENCE, until
from harness.small import TableSource, config, counts, engine

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody stands in line")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    SqliteLedger.create(tmp_path / "ledger.sqlite", {"id": "x"}).close()
    return tmp_path / "ledger.sqlite"


def far() -> float:
    return time.monotonic() + PATIENCE


def place_of(ledger: SqliteLedger) -> int:
    """Where the ledger's writing connection stands; 0 where it does not, or there is none yet."""
    database = ledger._process.medium._database
    if database is None:
        return 0
    assert isinstance(database.connection, SqliteConnection)
    return database.connection.order.place


def test_writers_are_served_in_the_order_in_which_they_came(place: Path) -> None:
    """Six of them: by chance they would come in this order once in 720 times."""
    go, served = threading.Event(), []

    def note(who: int, transaction: Transaction) -> None:
        served.append(who)
        values = np.zeros(0, np.int64)
        transaction.append(analyst="a", purpose=Purpose("p", "t"), event=Versioned(version=1), values=values)

    def hold(transaction: Transaction) -> None:
        go.wait(PATIENCE)

    ledgers = [SqliteLedger.open(place, busy_timeout=PATIENCE) for _ in range(7)]
    with ThreadPoolExecutor(7) as pool:
        done = [pool.submit(ledgers[6].commit, hold)]
        until(lambda: place_of(ledgers[6]))
        for who in (3, 1, 4, 0, 5, 2):
            done.append(pool.submit(ledgers[who].commit, lambda transaction, who=who: note(who, transaction)))
            until(lambda who=who: place_of(ledgers[who]))
        go.set()
        for each in done:
            each.result(PATIENCE)
    assert served == [3, 1, 4, 0, 5, 2]
    assert [place_of(ledger) for ledger in ledgers] == [0] * 7
    for ledger in ledgers:
        ledger.close()


def stand(place: Path, ready: Path) -> None:
    WriteOrder(place).wait(far())
    ready.touch()
    time.sleep(PATIENCE)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSTOP])
def test_who_dies_at_the_head_of_the_line_or_is_stopped_there_holds_nobody_up(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: signal.Signals
) -> None:
    monkeypatch.setattr(write_order, "STUCK_SECONDS", 0.05 if end == signal.SIGSTOP else PATIENCE)
    process = start(stand, place, tmp_path / "ready")
    until((tmp_path / "ready").exists)
    os.kill(process.pid, end)
    with closing(WriteOrder(place)) as order:
        for _ in range(2):  # one that was passed over is not waited for again
            order.wait(far())
            assert order.place
            order.leave()
            monkeypatch.setattr(write_order, "STUCK_SECONDS", PATIENCE)
    process.kill()
    process.join()


def test_patience_ends_in_line_too(place: Path) -> None:
    with closing(WriteOrder(place)) as first, closing(SqliteLedger.open(place, busy_timeout=0.05)) as hasty:
        first.wait(far())
        assert hasty.commit(lambda _: "served") == "served"  # SQLite decides, and nobody writes
        with closing(SqliteLedger.open(place)) as slow, ThreadPoolExecutor(1) as pool:
            go = threading.Event()
            done = pool.submit(slow.commit, lambda _: go.wait(PATIENCE))
            first.leave()
            until(lambda: place_of(slow))
            try:
                until(lambda: _refused(hasty))
            finally:
                go.set()
            assert done.result(PATIENCE)


def _refused(ledger: SqliteLedger) -> bool:
    try:
        ledger.commit(lambda _: None)
    except LedgerError as refusal:
        return "locked by another process" in str(refusal)
    return False


def test_a_place_is_free_again_when_the_owner_of_a_forked_copy_leaves(place: Path) -> None:
    with closing(WriteOrder(place)) as order, closing(WriteOrder(place)) as other:
        order.wait(far())
        read, write = os.pipe()
        if (child := os.fork()) == 0:
            os.close(write)
            os.read(read, 1)  # lives with a copy of the file until the test ends
            os._exit(0)
        order.leave()
        other.wait(far())
        assert other._before() == []
        os.close(write)
        os.close(read)
        os.waitpid(child, 0)


def test_two_who_come_at_the_same_moment_have_different_places(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic_ns", lambda: 7_000)
    with closing(WriteOrder(place)) as one, closing(WriteOrder(place)) as two:
        one.wait(far())
        two.wait(0.0)
        assert (one.place, two.place, two._before()) == (7_000, 7_001, [7_000])


def test_who_is_near_gets_ready_and_who_is_far_does_not(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a line of READY_WITHIN, and of one more: those in line are all of this process, so that nobody moves.

    A second passes with every look at the clock, so that each looks at the line once, however busy the machine is.
    """
    told, now = [], 0.0

    def look() -> float:
        nonlocal now
        now += 1
        return now

    clock = SimpleNamespace(monotonic=look, monotonic_ns=time.monotonic_ns)
    monkeypatch.setattr(write_order, "time", clock)
    orders = [WriteOrder(place) for _ in range(write_order.READY_WITHIN + 2)]
    for number, order in enumerate(orders):
        order.meanwhile = lambda number=number: told.append(number)  # type: ignore[misc]
        order.wait(now + 1.5)
    assert told == list(range(1, write_order.READY_WITHIN + 1))
    assert [len(order._before()) for order in orders[-2:]] == [write_order.READY_WITHIN, write_order.READY_WITHIN + 1]
    for order in orders:
        order.close()


def test_who_leaves_wakes_whose_turn_it_is_and_who_is_near(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks at the line without being woken."""
    monkeypatch.setattr(write_order, "SHORTEST_NAP", 10 * PATIENCE)
    monkeypatch.setattr(write_order, "LONGEST_NAP", 10 * PATIENCE)
    told: list[int] = []
    orders = [WriteOrder(place) for _ in range(write_order.READY_WITHIN + 2)]
    orders[0].wait(far())
    with ThreadPoolExecutor(len(orders)) as pool:
        done = []
        for number, order in enumerate(orders[1:], 1):
            order.meanwhile = lambda number=number: told.append(number)  # type: ignore[misc]
            done.append(pool.submit(order.wait, time.monotonic() + 10 * PATIENCE))
            until(lambda order=order: order._bell is not None)
        assert told == list(range(1, write_order.READY_WITHIN + 1))
        for order, served in zip(orders, done, strict=False):
            order.leave()
            served.result(PATIENCE)
            until(lambda: told[-1] == len(done))
    for order in orders:
        order.close()


def test_what_fails_meanwhile_stops_nobody(place: Path) -> None:
    def fail() -> None:
        raise LedgerError("the log cannot be read")

    with closing(WriteOrder(place)) as first, closing(SqliteLedger.open(place)) as ledger:
        first.wait(far())
        ledger.while_waiting(fail)
        assert ledger.commit(lambda _: "served") == "served"


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[Bursar, Bursar]]:
    """Two sessions on one ledger with epsilon 1, whose data are open; the second does not wait in line for long."""
    settings = config()
    ledger = SqliteLedger.create(tmp_path / "people.sqlite", settings.charter)
    declare_version(ledger, lambda key: TableSource(counts()), SystemRandomness())
    hasty = SqliteLedger.open(tmp_path / "people.sqlite", busy_timeout=0.05)
    with engine(settings=settings, ledger=ledger) as mine, engine(settings=settings, ledger=hasty) as theirs:
        buy(mine, epsilon=0.25)
        buy(theirs, epsilon=0.25)
        yield mine, theirs


def buy(session: Bursar, epsilon: float) -> None:
    everybody, noise = Product(()), Noise(kind=NoiseKind.LAPLACE, scale=1 / epsilon)
    session.kernel.measure(everybody, noise, analyst="ana", purpose=Purpose("q", "test"), at_most=2**60)


def test_what_others_bought_is_added_up_while_one_stands_in_line(tmp_path: Path, two: tuple[Bursar, Bursar]) -> None:
    mine, theirs = two
    with closing(WriteOrder(tmp_path / "people.sqlite")) as first, ThreadPoolExecutor(1) as pool:
        bought, known = theirs.kernel._position + 1, mine.kernel._position  # each without its own last purchase
        first.wait(far())
        done = pool.submit(mine.kernel.drop_hold, 0)
        until(lambda: mine.kernel._position == bought)
        first.leave()
        done.result(PATIENCE)
        assert known < bought


def test_what_is_bought_after_one_got_ready_counts(tmp_path: Path, two: tuple[Bursar, Bursar]) -> None:
    mine, theirs = two
    with closing(WriteOrder(tmp_path / "people.sqlite")) as first:
        first.wait(far())

        def overtake() -> None:
            buy(theirs, epsilon=0.25)
            first.leave()

        mine.ledger.while_waiting(overtake)
        with pytest.raises(BudgetError, match=r"0\.25 is left"):
            buy(mine, epsilon=0.5)
    assert mine.kernel.spent() == to_units(0.75)


def test_where_there_can_be_no_line_nobody_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order = WriteOrder(tmp_path / "no such folder" / "ledger.sqlite")
    order.wait(far())
    order.leave()
    order.close()
    monkeypatch.setattr(sys, "platform", "another")
    elsewhere = WriteOrder(tmp_path / "ledger.sqlite")
    elsewhere.wait(far())
    elsewhere.close()
    assert (order.place, elsewhere.place, list(tmp_path.iterdir())) == (0, 0, [])


def test_the_line_has_a_file_that_nobody_else_can_use(place: Path) -> None:
    with closing(SqliteLedger.open(place)) as ledger:
        ledger.commit(lambda _: None)
        order = place.with_name("ledger.sqlite-order")
        assert (order.stat().st_mode & 0o777, order.stat().st_size) == (0o600, 0)
        order.chmod(0o666)
        assert ledger.verify().notes == ("ledger.sqlite-order can be used by others (mode 666)",)

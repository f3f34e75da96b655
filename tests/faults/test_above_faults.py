"""Sparse vectors under fire: however a process ends, no instance is used again that may have answered "above"."""

from __future__ import annotations

import json
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from bursar.core.accounting import Closed, Failed, Noise, NoiseKind, Opened
from bursar.core.extensions.sparse_vector import SparseVectors, Threshold
from bursar.core.ledger import Purpose, Transaction, sqlite
from bursar.core.noise.system import SystemRandomness
from bursar.core.queries import Mask, Product, Steps
from bursar.errors import Busy, LedgerError, Stale
from bursar.planner.grant import Grant
from bursar.session import Bursar
from harness.cells import Numbers
from harness.faults import (
    HOUR,
    copied,
    die,
    exit_code,
    found,
    killed_at,
    later,
    loss,
    reopened,
    start,
    steps_of,
    steps_to_kill,
)
from harness.faults import Steps as Interrupted
from harness.small import counts

EPSILON = 4.0
SCOPE = Product((Mask(("sex",), (2,), Steps.total(2)),))
WOMEN = Product((Mask(("sex",), (2,), Steps.dense([[1, 0]])),))
WITHIN = int(counts().sum(axis=(0, 2))[0])
FAR = WITHIN + 10**6
INSTANCE = 2
"""Where the instance of the fixture stands in the log."""


def laplace(scale: float) -> Noise:
    return Noise(kind=NoiseKind.LAPLACE, scale=scale)


EVENT = Opened(scope=SCOPE, cut=10**5, threshold=laplace(8.0), test=laplace(16.0), version=1)
PRICE = 2**48


def try_once(bursar: Bursar, estimate: int, instance: int = INSTANCE) -> bool:
    planned = Failed(instance=instance, query=WOMEN, estimate=estimate, version=1)
    with Grant(bursar.kernel, "ana", "tested", (planned,), 2**60) as grant:
        return grant.above(instance, WOMEN, estimate).above


def patiently(bursar: Bursar, estimate: int) -> bool:
    """As the engine does: wait while somebody else is testing."""
    while True:
        try:
            return try_once(bursar, estimate)
        except Busy:
            time.sleep(0.002)


def opened(bursar: Bursar) -> int:
    with Grant(bursar.kernel, "ana", "opened", (EVENT,), 2**60) as grant:
        tested = grant.above(EVENT, WOMEN, WITHIN)
    assert not tested.above
    return tested.instance


def secret(bursar: Bursar) -> Threshold | None:
    body = bursar.ledger.commit(lambda transaction: transaction.secret(f"sparse vector {INSTANCE}"))
    return None if body is None else Threshold.of(body)


def ends(bursar: Bursar) -> list[str]:
    return [type(r.event).__name__ for r in bursar.ledger.records() if isinstance(r.event, Failed | Closed)]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A ledger with one open instance, at position 2."""
    made = tmp_path / "people.bursar" / "ledger.sqlite"
    found(made, EPSILON)
    with reopened(made, epsilon=EPSILON) as bursar:
        assert opened(bursar) == INSTANCE
    return made


# -- races --------------------------------------------------------------------------------------------------


def pass_often(place: Path, times: int) -> None:
    with reopened(place, epsilon=EPSILON) as bursar:
        passed = [not patiently(bursar, WITHIN) for _ in range(times)]
    assert all(passed)


def test_processes_take_turns_with_an_instance(place: Path) -> None:
    children = [start(pass_often, place, 10) for _ in range(4)]
    assert [exit_code(child) for child in children] == [0] * 4
    with reopened(place, epsilon=EPSILON) as bursar:
        bursar.owner.verify()
        assert (len(bursar.ledger.records()), bursar.kernel.spent()) == (2, PRICE)
        kept = secret(bursar)
        assert kept is not None
        assert kept.holder is None


def fail_once(place: Path, number: int) -> None:
    with reopened(place, epsilon=EPSILON) as bursar:
        try:
            outcome = "above" if patiently(bursar, FAR) else "below"
        except Stale:
            outcome = "stale"
    (place.parent / f"outcome {number}").write_text(outcome)


def test_one_of_many_processes_sees_the_one_test_that_is_above(place: Path) -> None:
    children = [start(fail_once, place, number) for number in range(4)]
    assert [exit_code(child) for child in children] == [0] * 4
    assert sorted(f.read_text() for f in place.parent.glob("outcome *")) == ["above", "stale", "stale", "stale"]
    with reopened(place, epsilon=EPSILON) as bursar:
        assert ends(bursar) == ["Failed"]


def test_one_of_many_threads_sees_the_one_test_that_is_above(place: Path) -> None:
    with reopened(place, epsilon=EPSILON) as bursar, ThreadPoolExecutor(8) as pool:

        def outcome(_: int) -> str:
            try:
                return "above" if patiently(bursar, FAR) else "below"
            except Stale:
                return "stale"

        assert sorted(pool.map(outcome, range(8))) == ["above"] + ["stale"] * 7
        assert ends(bursar) == ["Failed"]


class Unleased(SparseVectors):
    """A wrong twin: any plan may test at any time, and believes what its process has read of the log."""

    def threshold_for(self, transaction: Transaction, instance: int, fence: int) -> int:
        body = self.bodies.setdefault(instance, transaction.secret(f"sparse vector {instance}"))
        return Threshold.of(body).noisy

    bodies: dict[int, bytes]


def test_a_kernel_that_leases_nothing_is_above_twice(place: Path) -> None:
    """Two processes that have read the threshold both get to see a test that is above."""
    with reopened(place, epsilon=EPSILON) as one, reopened(place, epsilon=EPSILON) as other:
        outcomes = []
        for bursar in (one, other):
            assert not try_once(bursar, WITHIN)
        for bursar in (one, other):
            twin = Unleased(dict(bursar.kernel._vectors.opened))
            twin.bodies = {}
            bursar.kernel._vectors = twin
            bursar.ledger.commit(lambda t, twin=twin: twin.threshold_for(t, INSTANCE, 0))
            bursar.kernel._advance = lambda records: None  # type: ignore[method-assign]
        for bursar in (one, other):
            facts = {"analyst": "ana", "purpose": Purpose("", "test"), "fence": 0}
            outcomes.append(bursar.kernel.test(INSTANCE, WOMEN, FAR, **facts))
        assert outcomes == [True, True]


# -- kill -9 ------------------------------------------------------------------------------------------------

NAMED = (
    "before SystemRandomness.draw",  # leased, and nothing drawn
    "after SystemRandomness.draw",
    "after RowTransaction.append",
    "after RowTransaction.drop_secret",
    "before COMMIT",
    "after COMMIT",  # durable, and nobody has heard of it
    "before Grant.__exit__",  # heard of, and the lease not given back
    "after Grant.__exit__",
)


def try_and_die(place: Path, estimate: int, at: int | str) -> None:
    """Open, test, write down what was released, close; killed at the given step."""
    steps = Interrupted(at, die)
    steps.install(setattr)
    draw = SystemRandomness.draw

    def noted(self: SystemRandomness, noise: Noise, size: int) -> Numbers:
        (place.parent / "drawn").touch()
        return draw(self, noise, size)

    SystemRandomness.draw = noted  # type: ignore[method-assign]
    with reopened(place, epsilon=EPSILON) as bursar:
        planned = Failed(instance=INSTANCE, query=WOMEN, estimate=estimate, version=1)
        with Grant(bursar.kernel, "ana", "tested", (planned,), 2**60) as grant:
            above = grant.above(INSTANCE, WOMEN, estimate).above
            (place.parent / "released").write_text(json.dumps(above))
    (place.parent / "steps").write_text("\n".join(steps.passed))


def complaints(place: Path) -> list[str]:
    """What is wrong with a ledger after the crash and the next test, an hour later."""
    drawn, released = (place.parent / "drawn").exists(), place.parent / "released"
    wrong = []
    with later(HOUR), reopened(place, epsilon=EPSILON) as bursar:
        bursar.owner.verify()
        failed, kept = ends(bursar) == ["Failed"], secret(bursar)
        if released.exists() and json.loads(released.read_text()) != failed:
            wrong.append("an outcome was released that the log does not know")
        if failed != (kept is None):
            wrong.append("the threshold of a closed instance was kept, or of an open one lost")
        clean = kept is not None and kept.holder is None
        if drawn and clean and not released.exists():
            wrong.append("a test was drawn, not returned, and the lease given back")
        try:
            try_once(bursar, WITHIN)
            if not clean:
                wrong.append("an instance was tested again that a dead process had leased")
        except Stale:
            if clean:
                wrong.append("Stale although the lease had been given back")
        if not clean and len(ends(bursar)) != 1:
            wrong.append("the instance is not closed exactly once")
        if bursar.kernel.spent() != PRICE:
            wrong.append("spent is not the price of one instance")
        if not clean:
            opened(bursar)
            if bursar.kernel.spent() != 2 * PRICE:
                wrong.append("a new instance was not paid for")
        if bursar.kernel.spent() != loss([record.event for record in bursar.ledger.records()]):
            wrong.append("spent is not what the log says")
        if bursar.owner.recover().holds:
            wrong.append("a hold was left behind")
    return wrong


@pytest.mark.parametrize("estimate", [WITHIN, FAR], ids=["below", "above"])
def test_killed_where_the_promise_turns(place: Path, tmp_path: Path, estimate: int) -> None:
    names = steps_of(try_and_die, copied(place, tmp_path / "whole"), estimate)
    steps: list[int] = []
    for name in NAMED:
        if name in names[steps[-1] if steps else 0 :]:
            steps.append(names.index(name, steps[-1] if steps else 0) + 1)
    assert len(steps) == (len(NAMED) if estimate == FAR else len(NAMED) - 2)
    assert killed_at(steps, place, tmp_path, try_and_die, estimate, complaints=complaints) == {}


@pytest.mark.heavy
@pytest.mark.parametrize("estimate", [WITHIN, FAR], ids=["below", "above"])
def test_killed_at_every_step(place: Path, tmp_path: Path, estimate: int) -> None:
    names = steps_of(try_and_die, copied(place, tmp_path / "whole"), estimate)
    steps = steps_to_kill(len(names))
    assert killed_at(steps, place, tmp_path, try_and_die, estimate, complaints=complaints) == {}


def open_and_die(place: Path, at: int | str) -> None:
    steps = Interrupted(at, die)
    steps.install(setattr)
    with reopened(place, epsilon=EPSILON) as bursar:
        opened(bursar)
        (place.parent / "released").touch()
    (place.parent / "steps").write_text("\n".join(steps.passed))


def wrong_openings(place: Path) -> list[str]:
    """An opening is charged if it is in the log; what a dead process opened and did not give back is closed."""
    wrong = []
    with later(HOUR), reopened(place, epsilon=EPSILON) as bursar:
        bursar.owner.verify()
        records = bursar.ledger.records()
        made = sum(isinstance(record.event, Opened) for record in records)
        if bursar.kernel.spent() != made * PRICE or made not in (1, 2):
            wrong.append("spent is not what the log says")
        if (place.parent / "released").exists() and made != 2:
            wrong.append("an outcome was released by an instance that is not in the log")
        for instance in bursar.kernel.live("ana"):
            body = bursar.ledger.commit(lambda t, i=instance: t.secret(f"sparse vector {i}"))
            clean = body is not None and Threshold.of(body).holder is None
            try:
                try_once(bursar, WITHIN, instance)
                tested = True
            except Stale:
                tested = False
            if tested != clean:
                wrong.append("an instance was tested that was not given back, or could not be although it was")
    return wrong


def test_openings_killed(place: Path, tmp_path: Path) -> None:
    names = steps_of(open_and_die, copied(place, tmp_path / "whole"))
    drawn = [step for step, name in enumerate(names, 1) if name in ("after SystemRandomness.draw", "after COMMIT")]
    assert killed_at(drawn, place, tmp_path, open_and_die, complaints=wrong_openings) == {}


@pytest.mark.heavy
def test_openings_killed_at_every_step(place: Path, tmp_path: Path) -> None:
    names = steps_of(open_and_die, copied(place, tmp_path / "whole"))
    steps = steps_to_kill(len(names))
    assert killed_at(steps, place, tmp_path, open_and_die, complaints=wrong_openings) == {}


# -- disks and secrets --------------------------------------------------------------------------------------


class FullDisk(sqlite3.Connection):
    """Nothing can be written any more, and what writes nothing goes on."""

    full = False

    def execute(self, sql: str, *parameters: object) -> sqlite3.Cursor:
        if FullDisk.full and sql.startswith(("INSERT", "DELETE")):
            raise sqlite3.OperationalError("database or disk is full")
        return super().execute(sql, *parameters)


@pytest.mark.parametrize("estimate", [WITHIN, FAR], ids=["below", "above"])
def test_a_full_disk_tells_an_outcome_once_at_most(place: Path, estimate: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass succeeds there, and a test that is above fails, which tells; so the instance is never used again."""
    monkeypatch.setattr("bursar.core.ledger.SqliteLedger.factory", FullDisk)
    with reopened(place, epsilon=EPSILON) as bursar:
        planned = Failed(instance=INSTANCE, query=WOMEN, estimate=estimate, version=1)
        grant = Grant(bursar.kernel, "ana", "tested", (planned,), 2**60).__enter__()
        FullDisk.full = True
        try:
            if estimate == WITHIN:
                assert not grant.above(INSTANCE, WOMEN, estimate).above
            else:
                with pytest.raises(LedgerError):
                    grant.above(INSTANCE, WOMEN, estimate)
                with pytest.raises(Stale, match="did not end"):
                    grant.above(INSTANCE, WOMEN, estimate)
            with pytest.raises(LedgerError):
                grant.__exit__(None, None, None)
        finally:
            FullDisk.full = False
        with pytest.raises(Busy):
            try_once(bursar, WITHIN)
    with later(HOUR), reopened(place, epsilon=EPSILON) as bursar:
        with pytest.raises(Stale, match="had to be closed"):
            try_once(bursar, WITHIN)
        assert ends(bursar) == ["Closed"]


class Careless(sqlite3.Connection):
    """As in a build of SQLite that leaves what was deleted where it was."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.execute("PRAGMA secure_delete = OFF")


@pytest.mark.parametrize("twin", [False, True], ids=["as it is", "a wrong twin"])
def test_a_threshold_is_in_no_file_once_it_was_passed(place: Path, twin: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither while the ledger is open nor afterwards, whatever SQLite does by itself."""
    monkeypatch.setattr("bursar.core.ledger.SqliteLedger.factory", Careless)
    if twin:
        settings = tuple(setting for setting in sqlite.SETTINGS if "secure_delete" not in setting)
        monkeypatch.setattr(sqlite, "SETTINGS", settings)

    def left() -> list[bool]:
        return [key in file.read_bytes() for file in place.parent.iterdir()]

    with reopened(place, epsilon=EPSILON) as bursar:
        kept = secret(bursar)
        assert kept is not None
        key = kept.key.hex().encode()
        assert any(left())
        assert try_once(bursar, FAR)
        assert any(left()) == twin
    assert any(left()) == twin


def test_a_lost_secret_ends_the_instance(place: Path) -> None:
    with closing(sqlite3.connect(place)) as connection:
        name = f'["sparse vector {INSTANCE}"]'
        gone = connection.execute("DELETE FROM secrets WHERE name = ?", (name,)).rowcount
        gone += connection.execute("DELETE FROM directory WHERE entry = ?", (f"secrets {name}",)).rowcount
        connection.commit()
    assert gone == 2
    with reopened(place, epsilon=EPSILON) as bursar:
        with pytest.raises(Stale, match="had to be closed"):
            try_once(bursar, WITHIN)
        assert (ends(bursar), bursar.kernel.spent()) == (["Closed"], PRICE)
        assert opened(bursar) == INSTANCE + 2
        assert bursar.kernel.spent() == 2 * PRICE


def test_a_secret_that_was_changed_is_damage(place: Path) -> None:
    with closing(sqlite3.connect(place)) as connection:
        name = f'["sparse vector {INSTANCE}"]'
        connection.execute("UPDATE secrets SET body = ? WHERE name = ?", (b'{"holder":null}', name))
        connection.commit()
    with reopened(place, epsilon=EPSILON) as bursar, pytest.raises(LedgerError, match="damaged"):
        try_once(bursar, WITHIN)


def test_the_threshold_is_nowhere_in_the_log(tmp_path: Path) -> None:
    """A threshold of a dozen digits, none of which the event names."""
    place = tmp_path / "people.bursar" / "ledger.sqlite"
    found(place, EPSILON)
    wide = Opened(scope=SCOPE, cut=0, threshold=laplace(2.0**40), test=laplace(2.0**39), version=1)
    with reopened(place, epsilon=EPSILON) as bursar:
        with Grant(bursar.kernel, "ana", "opened", (wide,), 2**60) as grant:
            bursar.kernel.open(wide, analyst="ana", purpose=Purpose("", "test"), at_most=2**60, fence=grant._hold.fence)
        kept = secret(bursar)
    assert kept is not None
    with closing(sqlite3.connect(place)) as connection:
        bodies = b"".join(body for (body,) in connection.execute("SELECT body FROM log"))
    assert bodies
    assert str(abs(kept.noisy)).encode() not in bodies
    assert kept.noisy.to_bytes(8, "little", signed=True) not in bodies

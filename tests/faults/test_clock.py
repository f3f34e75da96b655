"""The clock jumps by days, forwards or backwards, between any two steps: it may cost time, never budget or answers."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from bursar import engine
from bursar.core.ledger import SqliteLedger
from bursar.errors import BudgetError, LedgerError
from bursar.planner.grant import CLAIM_SECONDS, HOLD_SECONDS
from harness.faults import (
    KILLED,
    Ask,
    Clock,
    Steps,
    ask_and_die,
    complaints,
    copied,
    found,
    later,
    loss,
    note,
    reopened,
    run,
    steps_to_kill,
)

DAYS = 3 * 86400.0
ASK = Ask(key="k")
OTHER = Ask(key="other", text="SELECT COUNT(*) FROM people WHERE age < 5", rows=1)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    made = tmp_path / "template" / "ledger.sqlite"
    found(made)
    return made


def ask_with_jump(place: Path, preset: str, at: int, seconds: float, monkeypatch: pytest.MonkeyPatch) -> int:
    """Ask two questions, the clock jumping at the given step; how many steps there were."""
    clock = Clock()
    steps = Steps(at, lambda: setattr(clock, "off", seconds))
    with monkeypatch.context() as patch, clock.running():
        steps.install(patch.setattr)
        with reopened(place, preset=preset) as bursar:
            for ask in (ASK, OTHER):
                note(place, ask, ask.of(bursar))
    return len(steps.passed)


def check_jumps(template: Path, preset: str, jumps: list[tuple[int, float]], monkeypatch: pytest.MonkeyPatch) -> None:
    for at, seconds in jumps:
        place = copied(template, template.parent.parent / f"{at} {seconds}")
        ask_with_jump(place, preset, at, seconds, monkeypatch)
        assert complaints(place, [ASK, OTHER], preset=preset) == [], (at, seconds)


def total(template: Path, preset: str, monkeypatch: pytest.MonkeyPatch) -> int:
    return ask_with_jump(copied(template, template.parent.parent / "whole"), preset, 0, 0.0, monkeypatch)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("preset", ["default", "row by row"])
def test_a_jump_at_some_steps(place: Path, preset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = total(place, preset, monkeypatch)
    jumps = [(at, seconds) for seconds in (DAYS, -DAYS) for at in random.sample(range(1, steps + 1), 12)]
    check_jumps(place, preset, jumps, monkeypatch)


@pytest.mark.parametrize(
    "preset", [pytest.param("default", marks=pytest.mark.heavy), pytest.param("row by row", marks=pytest.mark.soak)]
)
def test_a_jump_at_any_step(place: Path, preset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = total(place, preset, monkeypatch)
    assert steps > 150
    check_jumps(place, preset, [(at, random.choice((DAYS, -DAYS))) for at in steps_to_kill(steps)], monkeypatch)


class Restless(Clock):
    """A clock that jumps to another day whenever it is read."""

    def __call__(self) -> float:
        self.off = random.uniform(-DAYS, DAYS)
        return super().__call__()


def test_a_clock_that_never_rests(place: Path) -> None:
    """Holds and claims come and go at random: every key keeps its one answer all the same."""
    questions = [Ask(key=f"k{n}", text=f"SELECT COUNT(*) FROM people WHERE age < {n}", rows=1) for n in range(1, 10)]
    with Restless().running(), reopened(place, preset="row by row") as bursar:
        for ask in [*questions, ASK, *questions]:
            note(place, ask, ask.of(bursar))
    assert complaints(place, [*questions, ASK], preset="row by row") == []


def test_a_clock_that_never_rests_does_not_stretch_the_budget(place: Path) -> None:
    """Plans lose their holds in the middle and pay again, until nothing is left, and not a bit more."""
    granted: list[str] = []
    with Restless().running(), reopened(place, preset="row by row, forgetful") as bursar:

        def ask_until_refused() -> None:
            for number in range(100):
                granted.append(Ask(key=str(number)).of(bursar).source)

        with pytest.raises(BudgetError):
            ask_until_refused()
        spent = loss([record.event for record in bursar.ledger.records()])
        assert bursar.kernel.spent() == spent <= bursar.config.budget.units
    assert spent > 0
    assert len(granted) <= 16  # a plan costs 1/16: with a clock that stands still there would be 16


# -- leases of dead processes -------------------------------------------------------------------------------


def ask_ahead_of_time(place: Path, preset: str, at: str) -> None:
    with later(DAYS):
        ask_and_die(place, preset, [ASK], at)


def test_a_claim_from_the_future_ends_when_its_time_has_come(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process whose clock was three days ahead died. Until then the key waits; nothing is spent, nothing lost."""
    assert run(ask_ahead_of_time, place, "default", "before Grant.store") == KILLED
    with reopened(place) as bursar:
        before = bursar.kernel.spent()
        with monkeypatch.context() as patch:
            patch.setattr(engine, "PATIENCE_SECONDS", 0.2)
            with pytest.raises(LedgerError, match="too busy"):
                ASK.of(bursar)
        assert Ask(key="another key").of(bursar).free  # the question itself is not blocked
        assert bursar.kernel.spent() == before
    with later(DAYS + CLAIM_SECONDS + 1), reopened(place) as bursar:
        assert ASK.of(bursar).free
        assert bursar.kernel.spent() == before


def test_a_hold_from_the_future_can_be_ended_by_the_owner(place: Path) -> None:
    """Nobody need wait three days: the owner recovers the ledger with the time to come."""
    assert run(ask_ahead_of_time, place, "row by row", "after Grant.__enter__") == KILLED
    with later(HOLD_SECONDS + 1), reopened(place) as bursar:
        assert bursar.owner.recover().holds == 1
        assert bursar.budget().held > 0
        health = bursar.ledger.recover(now=Clock()() + DAYS + HOLD_SECONDS)
        assert health.holds == 0
        assert "1 expired holds dropped" in health.notes
        assert bursar.budget().held == 0
    ledger = SqliteLedger.open(place)
    assert ledger.verify().holds == 0
    ledger.close()

"""Keys: one key, one question, one answer, one charge; whoever asks, however often, whatever dies in between."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bursar import engine
from bursar.answer import Answer
from bursar.core.accounting import Measured
from bursar.core.ledger import Claim, chain
from bursar.errors import KeyConflict, LedgerError
from bursar.planner.goals import Wanted
from bursar.planner.grant import CLAIM_SECONDS
from harness.faults import (
    KILLED,
    Ask,
    Clock,
    Steps,
    ask_and_die,
    complaints,
    exit_code,
    found,
    later,
    measured,
    note,
    released,
    reopened,
    run,
    start,
)

ASK = Ask(key="k")
OTHER = Ask(key="k", text="SELECT COUNT(*) FROM people WHERE age < 5", rows=1)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    made = tmp_path / "people.bursar" / "ledger.sqlite"
    found(made)
    return made


def spent(place: Path) -> int:
    with reopened(place) as bursar:
        return bursar.kernel.spent()


def ask_at_once(place: Path, threads: int) -> None:
    """So many threads ask the same question under the same key; they start together."""
    together = threading.Barrier(threads)

    with reopened(place) as bursar:

        def client() -> None:
            together.wait()
            note(place, ASK, ASK.of(bursar))

        clients = [threading.Thread(target=client) for _ in range(threads)]
        for thread in clients:
            thread.start()
        for thread in clients:
            thread.join()


def notes(place: Path) -> int:
    return len((place.parent / "released").read_text().splitlines())


def test_one_key_in_many_threads(place: Path) -> None:
    ask_at_once(place, 16)
    assert notes(place) == 16
    assert len(released(place)["k"]) == 1
    assert complaints(place, [ASK]) == []


def test_one_key_in_many_processes(place: Path) -> None:
    children = [start(ask_at_once, place, 4) for _ in range(4)]
    assert [exit_code(child) for child in children] == [0] * 4
    assert notes(place) == 16
    assert len(released(place)["k"]) == 1
    assert complaints(place, [ASK]) == []


def test_without_keys_the_same_race_is_paid_more_than_once(place: Path) -> None:
    """A wrong twin: what the test above would see if keys did nothing."""
    with reopened(place, preset="direct") as bursar:
        for _ in range(2):
            note(place, ASK, Ask(key=None).of(bursar))
    assert len(released(place)["k"]) == 2
    assert "k: rows were measured twice or not at all" in complaints(place, [ASK])


# -- after a crash ------------------------------------------------------------------------------------------


def test_one_key_after_a_crash(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process dies between charge and release: the next waits for the end of its lease, and finds what was paid."""
    assert run(ask_and_die, place, "default", [ASK], "before Grant.store") == KILLED
    paid = spent(place)
    assert paid > 0
    with reopened(place) as bursar:
        with monkeypatch.context() as patch:
            patch.setattr(engine, "PATIENCE_SECONDS", 0.2)
            with pytest.raises(LedgerError, match="too busy"):
                ASK.of(bursar)
        with pytest.raises(KeyConflict):
            OTHER.of(bursar)
    with later(CLAIM_SECONDS + 1), reopened(place) as bursar:
        answer = ASK.of(bursar)
        assert answer.free
        assert [line[0] for line in answer.values] == measured(bursar.ledger.records(), ASK.text)[0].values.tolist()
    assert spent(place) == paid
    assert complaints(place, [ASK]) == []


def test_a_process_that_waits_gets_the_answer_when_the_lease_ends(place: Path) -> None:
    assert run(ask_and_die, place, "default", [ASK], "before Grant.store") == KILLED
    clock = Clock()
    with clock.running(), reopened(place) as bursar:
        end = threading.Timer(0.3, lambda: setattr(clock, "off", CLAIM_SECONDS + 1))
        end.start()
        assert ASK.of(bursar).free
        end.join()
    assert complaints(place, [ASK]) == []


# -- leases -------------------------------------------------------------------------------------------------


def interrupted(place: Path, monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> Answer:
    """Ask; after the charge and before the release, something happens once."""
    steps = Steps("before Grant.store", act)
    with monkeypatch.context() as patch, reopened(place) as bursar:
        steps.install(patch.setattr)
        return ASK.of(bursar)


def test_a_release_after_the_lease_gives_what_the_next_one_stored(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, others = Clock(), []

    def slow() -> None:
        clock.off = CLAIM_SECONDS + 1
        with reopened(place) as other:
            others.append(ASK.of(other))

    with clock.running():
        late = interrupted(place, monkeypatch, slow)
    assert [late] == others
    assert others[0].source == "exact"  # it did not pay again
    assert complaints(place, [ASK]) == []


def test_a_release_under_an_old_lease_waits_for_the_new_holder(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key was taken over by a process that is still at work: its answer will be the answer."""
    clock, stored, holders = Clock(), [], []
    with reopened(place) as other:
        question = other.engine.prepare(ASK.text, Wanted(within=ASK.within), "k").asked.question
        claim = Claim(analyst="ana", key="k", question=question, fence=1, expires=0.0)

        def take_over() -> None:
            clock.off = CLAIM_SECONDS + 1
            fresh = replace(claim, expires=clock() + CLAIM_SECONDS)
            assert other.ledger.commit(lambda t: t.claim(fresh, clock())) is None
            holders.append(threading.Timer(0.3, finish, [fresh]))
            holders[0].start()

        def finish(held: Claim) -> None:
            body = replace(OTHER.of(reopened(place, analyst="bob")), question="as the new holder has it").to_bytes()
            stored.append(other.ledger.commit(lambda t: t.answer(held, body)))

        with clock.running():
            late = interrupted(place, monkeypatch, take_over)
            holders[0].join()
    assert [late.to_bytes()] == stored


# -- another question ---------------------------------------------------------------------------------------


def test_one_key_for_another_question(place: Path) -> None:
    with reopened(place) as bursar:
        first = ASK.of(bursar)
        before = bursar.kernel.spent()
        with pytest.raises(KeyConflict):
            OTHER.of(bursar)
        with pytest.raises(KeyConflict):  # a tighter goal is another question
            Ask(key="k", within=30.0).of(bursar)
        assert bursar.kernel.spent() == before
        assert ASK.of(bursar) == first
    with reopened(place, analyst="bob") as bursar:  # keys belong to an analyst
        assert OTHER.of(bursar).charge > 0


def test_one_key_for_two_questions_at_once(place: Path) -> None:
    """One of the two wins; the other is refused and costs nothing."""
    outcomes: list[tuple[str, bytes | None]] = []
    together = threading.Barrier(16)
    with reopened(place) as bursar:

        def client(ask: Ask) -> None:
            together.wait()
            try:
                outcomes.append((ask.text, ask.of(bursar).to_bytes()))
            except KeyConflict:
                outcomes.append((ask.text, None))

        clients = [threading.Thread(target=client, args=(ask,)) for ask in [ASK, OTHER] * 8]
        for thread in clients:
            thread.start()
        for thread in clients:
            thread.join()
        won = {text for text, body in outcomes if body is not None}
        assert len(won) == 1
        assert len({body for text, body in outcomes if text in won}) == 1
        assert {body for text, body in outcomes if text not in won} == {None}
        paid = {r.question for r in bursar.ledger.records() if isinstance(r.event, Measured)}
        assert paid == {chain.question(text) for text in won}
    winner = ASK if ASK.text in won else OTHER
    assert complaints(place, [winner]) == []


def test_a_percentage_is_the_same_question_whatever_has_been_learnt_of_the_size(place: Path) -> None:
    with reopened(place) as bursar:
        bursar.query("SELECT COUNT(*) FROM people", within=300)
        first = bursar.query(ASK.text, within="5%", key="share")
        bursar.query("SELECT COUNT(*) FROM people", within=30)
        assert bursar.query(ASK.text, within="5%", key="share") == first

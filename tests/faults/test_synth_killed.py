"""kill -9 while a synthetic table is made: the same again goes on, and nothing is bought twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from bursar.core.accounting import Paid
from bursar.errors import BudgetError
from bursar.planner.grant import HOLD_SECONDS
from bursar.synthetic.session import silent
from harness.faults import KILLED, Steps, copied, die, found, later, reopened, run, steps_of

SPEND = 0.25
ALL_BUT_LITTLE = 0.9


def make(place: Path, method: str) -> float:
    with reopened(place, analyst="owner") as bursar:
        return bursar.synthesize(marginals="age; sex", spend=SPEND, method=method, rows=50).charge


def make_and_die(place: Path, method: str, at: int) -> None:
    steps = Steps(at, die)
    steps.install(setattr)
    make(place, method)
    (place.parent / "steps").write_text("\n".join(steps.passed))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("template") / "ledger.sqlite"
    found(place)
    return place


def purchases(place: Path) -> list[tuple[str, str]]:
    with reopened(place, analyst="owner") as bursar:
        return [(r.question, type(r.event).__name__) for r in bursar.ledger.records() if isinstance(r.event, Paid)]


def spent(place: Path) -> float:
    with reopened(place, analyst="owner") as bursar:
        return bursar.budget().spent


@pytest.mark.heavy
@pytest.mark.parametrize("method", ["marginals", "both"])
def test_killed_in_the_middle_and_resumed(
    method: str, template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where the config of the harness has its folder
    whole = copied(template, tmp_path / "whole")
    names = steps_of(make_and_die, whole, method)
    bought, cost = purchases(whole), spent(whole)
    assert 0 < cost <= SPEND
    commits = [number + 1 for number, name in enumerate(names) if name == "after COMMIT"]
    draws = [number + 1 for number, name in enumerate(names) if name.startswith("after SystemRandomness.")]
    for step in (draws[0], draws[-1], commits[0], commits[len(commits) // 2], commits[-1]):
        place = copied(template, tmp_path / f"step {step}")
        assert run(make_and_die, place, method, step) == KILLED
        before = len(purchases(place))
        make(place, method)
        assert purchases(place) == bought, step
        assert before <= len(bought)
        assert spent(place) <= SPEND  # what picked counts cost depends on which ones they are
        assert method != "marginals" or spent(place) == pytest.approx(cost, rel=1e-9)
        assert make(place, method) == 0


def begin_and_die(place: Path, method: str, purchases: int) -> None:
    """Killed while it makes something of what it has bought, with the hold for the rest."""
    with reopened(place, analyst="owner") as bursar:
        prepared = bursar.prepare_synthesis(marginals="age; sex", spend=ALL_BUT_LITTLE, method=method, rows=50)

        def stop() -> bool:
            if sum(isinstance(record.event, Paid) for record in bursar.ledger.records()) >= purchases:
                die()
            return False

        prepared.synthesis.make_table(prepared, silent, stop)


def asked(place: Path) -> float:
    """What somebody else pays who wants half of the budget."""
    with reopened(place) as bursar:
        return bursar.query("SELECT sex, COUNT(*) FROM people GROUP BY sex", epsilon=0.5).charge


@pytest.mark.sampled(3)
@pytest.mark.parametrize("method", ["marginals", "rap", "both"])
def test_what_a_killed_run_held_is_there_for_the_same_run_at_once_and_for_others_after_its_lease(
    method: str, template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    place = copied(template, tmp_path / "killed")
    assert run(begin_and_die, place, method, 1) == KILLED
    with reopened(place, analyst="owner") as bursar:
        assert 0 < bursar.budget().held <= ALL_BUT_LITTLE
    with pytest.raises(BudgetError):
        asked(place)
    given_up = copied(place, tmp_path / "given up")
    with later(HOLD_SECONDS + 1):
        assert asked(given_up) > 0
    with reopened(place, analyst="owner") as bursar:
        made = bursar.synthesize(marginals="age; sex", spend=ALL_BUT_LITTLE, method=method, rows=50)
        assert made.report.finished
        assert bursar.budget().held == 0
    assert spent(place) <= ALL_BUT_LITTLE

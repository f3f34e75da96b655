"""kill -9 while a synthetic table is made: the same again goes on, and nothing is bought twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from bursar.kernel.accounting import Paid
from harness.faults import KILLED, Steps, copied, die, found, reopened, run, steps_of

SPEND = 0.25


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
        return [(r.purpose, type(r.event).__name__) for r in bursar.ledger.records() if isinstance(r.event, Paid)]


def spent(place: Path) -> float:
    with reopened(place, analyst="owner") as bursar:
        return bursar.budget().spent


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

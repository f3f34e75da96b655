"""Selections under fire: the budget is never overdrawn, and a crash leaves all of a selection in the log or nothing."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bursar.core.accounting import Selected
from bursar.core.accounts import Charge
from bursar.core.kernel import Kernel
from bursar.core.ledger import Purpose
from bursar.core.queries import Mask, Product, Stack, Steps
from bursar.errors import BudgetError
from bursar.session import Bursar
from harness.faults import KILLED, copied, die, exit_code, found, loss, reopened, run, start, steps_of, steps_to_kill
from harness.faults import Steps as Interrupted

MARGINALS = Stack(
    tuple(Product((Mask((name,), (size,), Steps.identity(size)),)) for name, size in [("age", 10), ("sex", 2)])
)
PRICE = 2**50 // 8
"""Of four picks of scale 64: there are eight such selections in the budget."""


def select(bursar: Bursar) -> list[int]:
    facts: Any = {"count": 4, "scale": 64.0, "barred": np.array([1, 11])}
    facts |= {"analyst": "ana", "purpose": Purpose("chosen", "test"), "at_most": 2**60}
    record, _ = bursar.kernel.select(MARGINALS, np.arange(12) * 9, **facts)
    return list(map(int, record.values))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    made = tmp_path / "people.bursar" / "ledger.sqlite"
    found(made)
    return made


def logged(bursar: Bursar) -> list[list[int]]:
    return [record.values.tolist() for record in bursar.ledger.records() if isinstance(record.event, Selected)]


# -- races --------------------------------------------------------------------------------------------------


def exhaust(bursar: Bursar) -> list[list[int]]:
    """Select until it is refused, together with others who do the same."""
    ours: list[list[int]] = []
    while len(ours) < 100:
        try:
            ours.append(select(bursar))
        except BudgetError:
            break
    return ours


def check_all_is_granted_once(place: Path, seen: list[list[int]]) -> None:
    with reopened(place) as bursar:
        bursar.owner.verify()
        assert sorted(logged(bursar)) == sorted(seen)
        events = [record.event for record in bursar.ledger.records()]
        assert bursar.kernel.spent() == loss(events) == bursar.config.budget.units == 8 * PRICE
    assert all(len(set(rows)) == 4 and not {1, 11} & set(rows) for rows in seen)


def exhaust_alone(place: Path, number: int) -> None:
    with reopened(place) as bursar:
        (place.parent / f"seen {number}").write_text(json.dumps(exhaust(bursar)))


def test_processes_never_overdraw(place: Path) -> None:
    children = [start(exhaust_alone, place, number) for number in range(4)]
    assert [exit_code(child) for child in children] == [0] * 4
    seen = [rows for file in place.parent.glob("seen *") for rows in json.loads(file.read_text())]
    check_all_is_granted_once(place, seen)


def test_threads_never_overdraw(place: Path) -> None:
    with reopened(place) as bursar, ThreadPoolExecutor(8) as pool:
        ours = list(pool.map(lambda _: exhaust(bursar), range(8)))
    check_all_is_granted_once(place, [rows for each in ours for rows in each])


def believes(kernel: Kernel, *given: Any) -> Charge:
    """A wrong twin: whatever was asked for was left when it was asked for."""
    return Charge(total=0, account=0)


def test_a_kernel_that_does_not_look_again_overdraws(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Kernel, "_require_budget", believes)
    with reopened(place) as bursar:
        for _ in range(9):
            select(bursar)
        assert bursar.kernel.spent() > bursar.config.budget.units


# -- kill -9 ------------------------------------------------------------------------------------------------


def select_and_die(place: Path, at: int | str) -> None:
    """Open, select, write down what was released, close; killed at the given step."""
    steps = Interrupted(at, die)
    steps.install(setattr)
    with reopened(place) as bursar:
        (place.parent / "released").write_text(json.dumps(select(bursar)))
    (place.parent / "steps").write_text("\n".join(steps.passed))


def complaints(place: Path, durable: bool) -> list[str]:
    """What is wrong with a ledger after the crash, and after one more selection."""
    released = place.parent / "released"
    with reopened(place) as bursar:
        bursar.owner.verify()
        before, wrong = logged(bursar), []
        if len(before) != durable:
            wrong.append("a selection is in the log before its commit, or it is not after it")
        if bursar.kernel.spent() != loss([record.event for record in bursar.ledger.records()]):
            wrong.append("spent is not what the log says")
        if bursar.kernel.spent() != PRICE * len(before):
            wrong.append("what was charged is not what was selected")
        if released.exists() and [json.loads(released.read_text())] != before:
            wrong.append("rows were released that are not in the log")
        again = select(bursar)
        if logged(bursar) != [*before, again] or bursar.kernel.spent() != PRICE * (len(before) + 1):
            wrong.append("the next selection was not charged as it should")
        if bursar.owner.recover().holds:
            wrong.append("a hold was left behind")
    return wrong


def killed_at(place: Path, home: Path, names: list[str], steps: list[int]) -> dict[int, list[str]]:
    drawn = names.index("after SystemRandomness.select")
    committed = names.index("after COMMIT", drawn) + 1
    wrong = {}
    for step in steps:
        copy = copied(place, home / f"step {step}")
        assert run(select_and_die, copy, step) == KILLED
        if found_wrong := complaints(copy, durable=step >= committed):
            wrong[step] = found_wrong
    return wrong


NAMED = (
    "after Tables.counts",  # exact counts are read
    "before SystemRandomness.select",  # inside the commit, admitted
    "after SystemRandomness.select",
    "after RowTransaction.append",
    "before COMMIT",
    "after COMMIT",  # durable, and nobody has heard of it
    "after SqliteLedger.commit",
)


def test_killed_where_the_promise_turns(place: Path, tmp_path: Path) -> None:
    names = steps_of(select_and_die, copied(place, tmp_path / "whole"))
    steps: list[int] = []
    for name in NAMED:
        steps.append(names.index(name, steps[-1] if steps else 0) + 1)
    assert killed_at(place, tmp_path, names, steps) == {}


@pytest.mark.heavy
def test_killed_at_every_step(place: Path, tmp_path: Path) -> None:
    names = steps_of(select_and_die, copied(place, tmp_path / "whole"))
    assert len(names) > 30
    assert killed_at(place, tmp_path, names, steps_to_kill(len(names))) == {}


def test_a_commit_that_fails_charges_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was drawn and lost was never seen: the next try draws afresh."""
    with reopened(place) as bursar:
        real, drawn = bursar.kernel._randomness.select, []

        def watched(scores: Any, **law: Any) -> Any:
            drawn.append(real(scores, **law).tolist())
            if len(drawn) == 1:
                raise ZeroDivisionError
            return np.array(drawn[-1])

        monkeypatch.setattr(bursar.kernel._randomness, "select", watched)
        with pytest.raises(ZeroDivisionError):
            select(bursar)
        assert bursar.kernel.spent() == 0
        assert logged(bursar) == []
        assert select(bursar) == drawn[1]
        assert bursar.kernel.spent() == PRICE

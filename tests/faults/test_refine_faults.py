"""Refinements under fire: a row is never refined twice from one state, and a crash loses nothing that was seen."""

from __future__ import annotations

import itertools
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from bursar.core.accounting import Measured, Noise, NoiseKind, Refined
from bursar.core.extensions.refine import Blocks
from bursar.core.ledger import Purpose
from bursar.core.queries import Mask, Product, Steps
from bursar.errors import Stale
from bursar.session import Bursar
from harness.cells import Numbers
from harness.faults import Steps as Interrupted
from harness.faults import copied, die, exit_code, found, killed_at, loss, reopened, start, steps_of, steps_to_kill

BY_AGE = Product((Mask(("age",), (10,), Steps.identity(10)),))
EPSILON = 4.0
CHAIN = (16.0, 8.0, 4.0, 2.0, 1.0, 0.5)
"""The scales through which every row is taken, one step at a time."""

NAMED = (
    "before SystemRandomness.refine",  # inside the commit, admitted
    "after SystemRandomness.refine",
    "after RowTransaction.append",
    "before COMMIT",
    "after COMMIT",  # durable, and nobody has heard of it
    "after SqliteLedger.commit",
)


def laplace(scale: float) -> Noise:
    return Noise(kind=NoiseKind.LAPLACE, scale=scale)


def refine(bursar: Bursar, row: int, before: float, after: float) -> Numbers:
    facts = {"analyst": "ana", "purpose": Purpose("finer", "test"), "at_most": 2**60}
    return bursar.kernel.refine(2, [row], laplace(after), before=laplace(before), **facts)[0].values


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A ledger with one measurement, at position 2."""
    made = tmp_path / "people.bursar" / "ledger.sqlite"
    found(made, EPSILON)
    with reopened(made, epsilon=EPSILON) as bursar:
        bursar.kernel.measure(BY_AGE, laplace(CHAIN[0]), analyst="ana", purpose=Purpose("", "test"), at_most=2**60)
    return made


# -- races --------------------------------------------------------------------------------------------------


def climb(bursar: Bursar, row: int) -> int:
    """Take a row through all scales, together with others who do the same; how many of the steps were ours."""
    ours = 0
    for before, after in itertools.pairwise(CHAIN):
        try:
            refine(bursar, row, before, after)
            ours += 1
        except Stale:
            continue
    return ours


def check_one_chain(place: Path, rows: int) -> None:
    """Every row was refined once from each scale to the next, and the loss is that of the last."""
    with reopened(place, epsilon=EPSILON) as bursar:
        bursar.owner.verify()
        events = [record.event for record in bursar.ledger.records() if isinstance(record.event, Refined)]
        assert bursar.kernel.spent() == loss([r.event for r in bursar.ledger.records()]) == 2 * 2**50
    steps = list(itertools.pairwise(CHAIN))
    for row in range(rows):
        own = [(event.before.scale, event.after.scale) for event in events if event.rows.tolist() == [row]]
        assert own == steps
    assert len(events) == rows * len(steps)


def test_threads_refine_a_row_once_from_each_state(place: Path) -> None:
    with reopened(place, epsilon=EPSILON) as bursar, ThreadPoolExecutor(16) as pool:
        ours = list(pool.map(lambda number: climb(bursar, number % 4), range(16)))
    assert sum(ours) == 4 * (len(CHAIN) - 1)
    check_one_chain(place, 4)


def climb_alone(place: Path, number: int) -> None:
    with reopened(place, epsilon=EPSILON) as bursar:
        ours = [climb(bursar, row) for row in (0, 1)]
    (place.parent / f"tally {number}").write_text(str(sum(ours)))


def test_processes_refine_a_row_once_from_each_state(place: Path) -> None:
    children = [start(climb_alone, place, number) for number in range(4)]
    assert [exit_code(child) for child in children] == [0] * 4
    tallies = [int(file.read_text()) for file in place.parent.glob("tally *")]
    assert sum(tallies) == 2 * (len(CHAIN) - 1)
    check_one_chain(place, 2)


class Unwatched(Blocks):
    """A wrong twin: believes the plan about the noise that the rows have."""

    def values(self, event: Refined, pending: object = ()) -> Numbers:
        return self.records[event.block].values[event.rows]


def test_a_kernel_that_believes_the_plan_refines_twice(place: Path) -> None:
    with reopened(place, epsilon=EPSILON) as bursar:
        bursar.kernel._blocks = Unwatched()
        ours = [climb(bursar, 0) for _ in range(2)]
    assert sum(ours) > len(CHAIN) - 1


# -- kill -9 ------------------------------------------------------------------------------------------------


def refine_and_die(place: Path, at: int | str) -> None:
    """Open, refine, write down what was released, close; killed at the given step."""
    steps = Interrupted(at, die)
    steps.install(setattr)
    with reopened(place, epsilon=EPSILON) as bursar:
        values = refine(bursar, 3, CHAIN[0], CHAIN[1])
        (place.parent / "released").write_text(json.dumps(values.tolist()))
    (place.parent / "steps").write_text("\n".join(steps.passed))


def complaints(place: Path) -> list[str]:
    """What is wrong with a ledger after the crash and the retry."""
    released = place.parent / "released"
    with reopened(place, epsilon=EPSILON) as bursar:
        bursar.owner.verify()
        before = list(bursar.ledger.records())
        refined = [record for record in before if isinstance(record.event, Refined)]
        wrong = []
        if bursar.kernel.spent() != loss([record.event for record in before]):
            wrong.append("spent is not what the log says")
        if released.exists() and [json.loads(released.read_text())] != [r.values.tolist() for r in refined]:
            wrong.append("a value was released that is not in the log")
        try:
            refine(bursar, 3, CHAIN[0], CHAIN[1])
            if refined:
                wrong.append("refined twice from one state")
        except Stale:
            if not refined:
                wrong.append("Stale although nothing was refined")
        records = bursar.ledger.records()
        if sum(isinstance(record.event, Measured | Refined) for record in records) != 2:
            wrong.append("a row was refined twice or not at all")
        if bursar.kernel.spent() != loss([record.event for record in records]) or bursar.kernel.spent() != 2**50 // 8:
            wrong.append("the retry was not charged as it should")
        return wrong


def test_killed_where_the_promise_turns(place: Path, tmp_path: Path) -> None:
    names = steps_of(refine_and_die, copied(place, tmp_path / "whole"))
    steps: list[int] = []
    for name in NAMED:
        steps.append(names.index(name, steps[-1] if steps else 0) + 1)
    assert killed_at(steps, place, tmp_path, refine_and_die, complaints=complaints) == {}


@pytest.mark.heavy
def test_killed_at_every_step(place: Path, tmp_path: Path) -> None:
    names = steps_of(refine_and_die, copied(place, tmp_path / "whole"))
    steps = steps_to_kill(len(names))
    assert killed_at(steps, place, tmp_path, refine_and_die, complaints=complaints) == {}


def test_a_commit_that_fails_keeps_the_old_noise(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was drawn and lost was never seen: the next try draws afresh under the same old noise."""
    seen: list[list[int]] = []
    with reopened(place, epsilon=EPSILON) as bursar:
        real = bursar.kernel._randomness.refine

        def watched(current: Numbers, before: Noise, after: Noise) -> Numbers:
            seen.append(current.tolist())
            if len(seen) == 1:
                raise ZeroDivisionError
            return np.asarray(real(current, before, after))

        monkeypatch.setattr(bursar.kernel._randomness, "refine", watched)
        with pytest.raises(ZeroDivisionError):
            refine(bursar, 0, CHAIN[0], CHAIN[1])
        spent = bursar.kernel.spent()
        refine(bursar, 0, CHAIN[0], CHAIN[1])
        assert seen[0] == seen[1]
        assert (spent, bursar.kernel.spent()) == (2**46, 2**47)

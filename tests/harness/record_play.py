"""Record-play: the whole engine on two neighbouring data sets, with noisy answers that an adversary dictates.

The tape knows the exact answers of its own run and returns noise = wanted - exact, so both runs release the same
values. Then everything that can be seen must be the same: verbs, their parameters and order, prices, records, messages,
answers, budget and log; and what is hidden, the exact answers, must differ by exactly q_j of the rows that differ.

It cannot see a wrong law of noise, reused randomness, races or timing: those have their own tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from bursar.core.accounting import Closed, Failed, Measured, Mode, NoiseKind, Opened, Refined, Selected
from bursar.core.ledger import Record
from bursar.core.noise.law import UNIT_BITS
from bursar.core.queries import LinearMap
from harness import plainly
from harness.cells import Cell, Numbers
from harness.claims import claimed
from harness.people import Pair, table_faults
from harness.player import Run
from harness.stage import AS_IT_IS, CRASHED, Under, play
from harness.steps import Step

ANSWERING = ("measure", "refine")
"""Verbs whose records hold exact answers and noise."""


def faults(pair: Pair, steps: Sequence[Step], under: Under = AS_IT_IS) -> list[str]:
    """Everything that record-play finds wrong with one pair of neighbours; empty where nothing is."""
    left, right = play(pair, pair.left, steps, under), play(pair, pair.right, steps, under)
    found = _differences(left, right)
    versions = zip(pair.left, pair.right, left.tables, right.tables, strict=False)  # some were perhaps never declared
    found += [fault for version in versions for fault in table_faults(pair.settings.unit, *version)]
    found += [fault for run in (left, right) for fault in _not_as_told(run)]
    if found:
        return found
    return _wrong_inputs(left, right) or _underpriced(pair, left, right)


def _differences(left: Run, right: Run) -> list[str]:
    """The first thing that can be seen in one run and not in the other."""
    for place, (here, there) in enumerate(zip(left.seen, right.seen, strict=False)):
        if here != there:
            return [f"the runs can be told apart at {place}:\n  {here}\n  {there}"]
    return [] if len(left.seen) == len(right.seen) else ["one run shows more than the other"]


def _not_as_told(run: Run) -> list[str]:
    """Every record has one draw of its own noise, and its values are those that the adversary wanted."""
    found = [f"the engine crashed: {seen[-1]}" for seen in run.seen if CRASHED in seen]
    found += _tests_not_as_told(run) + _selections_not_as_told(run)
    shown: dict[tuple[int, int], int] = {}  # the last value of every row
    answered = [c for c in run.calls if c.record is not None and c.verb in ANSWERING]
    for call in sorted(answered, key=lambda c: c.record.position):
        record, event = call.record, call.record.event
        if isinstance(event, Refined):
            block, rows, law = event.block, event.rows, (event.before, event.after)
        else:
            block, rows, law = record.position, np.arange(event.strategy.rows), event.noise
        if call.draws != [(law, len(rows))]:
            found.append("a record does not have exactly one draw of its own noise for each of its rows")
        elif not np.array_equal(record.values, call.wanted[-1]):
            found.append("a record does not hold exact answers plus the noise that was drawn")
        elif isinstance(event, Refined):
            before = [shown[block, int(row)] for row in rows]
            if not np.array_equal(call.current[-1] + call.inputs, before):
                found.append("a row was not refined under the noise that it was last shown with")
        shown.update({(block, int(row)): int(value) for row, value in zip(rows, record.values, strict=False)})
    return found


def _tests_not_as_told(run: Run) -> list[str]:
    """A threshold is drawn when an instance is opened, a test's noise for every test, which comes out by it; after a
    test that was above, or whose outcome nobody was given, there is no other."""
    found: list[str] = []
    opened = {c.record.position: c.record.event for c in run.calls if c.verb == "open" and c.record is not None}
    if any(c.draws != [(c.record.event.threshold, 1)] for c in run.calls if c.verb == "open" and c.record is not None):
        found.append("a sparse vector was opened without exactly one draw for its threshold")
    ended: set[int] = set()
    for call in run.calls:
        if call.tested is None or not call.draws:
            continue
        instance, passed = call.tested[0], call.ended == (False,)
        if call.draws != [(opened[instance].test, 1)]:
            found.append("a test does not have exactly one draw of its own noise")
        elif instance in ended:
            found.append("a sparse vector was tested that had to be closed")
        elif call.ended in ((False,), (True,)) and call.ended != (call.told,):
            found.append("a test did not come out as its noise says")
        ended |= set() if passed else {instance}
    closed = {record.event.instance for record in run.log if isinstance(record.event, Failed | Closed)}
    above = {call.tested[0] for call in run.calls if call.tested is not None and call.ended == (True,)}
    failed = {record.event.instance for record in run.log if isinstance(record.event, Failed)}
    if above != failed or not failed <= closed:
        found.append("the log does not hold exactly the tests that were above")
    return found


def _selections_not_as_told(run: Run) -> list[str]:
    """Rows were picked once, by the distances of exact answers from the estimates, as the adversary wanted."""
    found: list[str] = []
    for call in run.calls:
        if call.verb != "select" or call.record is None:
            continue
        event = call.record.event
        assert call.expected is not None
        if call.draws != [(event.scale, event.count)] or not np.array_equal(call.record.values, call.wanted[-1]):
            found.append("a selection does not have exactly one draw of its own law")
        elif not np.array_equal(call.scores[-1], call.expected):
            found.append("rows were not selected by how far exact answers are from the estimates")
    return found


def _distances(left: Run, right: Run) -> dict[int, int]:
    """By how much the distances behind the tests of each instance differ at most, passed tests and lost ones too."""
    most: dict[int, int] = {}
    for here, there in zip(left.calls, right.calls, strict=True):
        if here.tested is not None and there.tested is not None and here.draws:
            instance = here.tested[0]
            most[instance] = max(most.get(instance, 0), abs(here.tested[1] - there.tested[1]))
    return most


def _shifts(left: Run, right: Run) -> list[tuple[Record, Measured | Refined, Numbers]]:
    """Every measurement and refinement in the log, and by how much the exact answers behind it differ."""
    found = []
    for here, there in zip(left.calls, right.calls, strict=True):
        if here.record is not None and here.verb in ANSWERING:
            found.append((here.record, here.record.event, there.inputs - here.inputs))
    return found


def _wrong_inputs(left: Run, right: Run) -> list[str]:
    """The exact answers behind the records must differ by q_j of the rows that differ."""

    def moved(strategy: LinearMap, version: int) -> Numbers:
        return right.exact(strategy, version - 1) - left.exact(strategy, version - 1)

    right_ones = [
        np.array_equal(shift, moved(event.strategy, event.version)) for _, event, shift in _shifts(left, right)
    ]
    return [] if all(right_ones) else ["the exact answers do not differ by q_j(v)"]


def _underpriced(pair: Pair, left: Run, right: Run) -> list[str]:
    """At no time may this very pair be told apart better than what was charged until then, nor, in the end, than what
    is booked on the cells where it differs."""
    charged = np.cumsum(np.array([0, *left.charges], object))
    mode = pair.settings.budget.mode
    losses = [(record.position, _loss(event, shift, mode)) for record, event, shift in _shifts(left, right)]
    moved = _distances(left, right)
    losses += [
        (here.record.position, _selection_loss(here.record.event, there.scores[-1] - here.scores[-1], mode))
        for here, there in zip(left.calls, right.calls, strict=True)
        if here.verb == "select" and here.record is not None
    ]
    losses += [(r.position, _sparse_loss(r, moved, mode)) for r in left.log if isinstance(r.event, Opened)]
    loss = Fraction(0)
    for position, more in sorted(losses):
        loss += more
        if loss > Fraction(int(charged[position]), 2**UNIT_BITS):
            return ["the pair can be told apart better than was paid for"]
    if charged[-1] > pair.settings.budget.units:
        return ["more was charged than the budget allows"]
    assert left.book is not None
    if not all(plainly.is_sum(event.strategy) for _, event, _ in _shifts(left, right)):
        return []  # what is lost as a whole has no share for each row
    versions = [[_cells(table) for table in run.tables] for run in (left, right)]
    booked = claimed(left.book, pair.settings.domain, *versions)
    return [] if loss <= booked else ["the pair can be told apart better than is booked on its cells"]


def _cells(table: Numbers) -> list[Cell]:
    return [tuple(map(int, cell)) for cell in np.argwhere(table) for _ in range(table[tuple(cell)])]


def _sparse_loss(record: Record, moved: dict[int, int], mode: Mode) -> Fraction:
    """d (1/b_T + 2/b_Q) for an instance whose tests are moved by d at most, or half its square."""
    scales = [Fraction(noise.scale) for noise in (record.event.threshold, record.event.test)]
    pure = moved.get(record.position, 0) * (1 / scales[0] + 2 / scales[1])
    return pure if mode is Mode.PURE else pure**2 / 2


def _selection_loss(event: Selected, shift: Numbers, mode: Mode) -> Fraction:
    """2 n d / g for n picks by scores that differ by d at most, or n d^2 / (2 g^2)."""
    change = Fraction(int(np.abs(shift).max(initial=0))) / Fraction(event.scale)
    return event.count * (2 * change if mode is Mode.PURE else change**2 / 2)


def _loss(event: Measured | Refined, shift: Numbers, mode: Mode) -> Fraction:
    """sum_j |d_j| / b, or sum_j d_j^2 / (2 sigma^2), of independent rows whose answers are shifted by d_j; a refined
    row loses what its finer noise loses, less what it had lost before."""
    if isinstance(event, Refined):
        assert mode is Mode.PURE
        return Fraction(int(np.abs(shift).sum())) * (1 / Fraction(event.after.scale) - 1 / Fraction(event.before.scale))
    scale = Fraction(event.noise.scale)
    if mode is Mode.PURE:
        assert event.noise.kind is NoiseKind.LAPLACE
        return Fraction(int(np.abs(shift).sum())) / scale
    return Fraction(int(np.square(shift).sum())) / (2 * scale**2)

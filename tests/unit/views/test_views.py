"""Views of the log: what is kept of it, and when it is forgotten."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.core.accounting import Event, Measured, Noise, NoiseKind, Versioned
from bursar.core.ledger import Record
from bursar.core.queries import LinearMap, Product, Stack
from bursar.estimation.least_squares import Block, Reconstruction
from bursar.views import measurements as views
from bursar.views.measurements import Measurements, Reconstructions, noise_of, products_of
from harness.maps import domain_of, mask_of

DOMAIN = domain_of(a=3, b=2, c=4)
EYE = Product((mask_of(DOMAIN, ("a",), np.eye(3, dtype=int)),))
JOINT = Product((mask_of(DOMAIN, ("b",), np.eye(2, dtype=int)), mask_of(DOMAIN, ("a",), np.eye(3, dtype=int))))
EVERYBODY = Product(())


class Log:
    """A log in the making."""

    def __init__(self) -> None:
        self.measurements = Measurements(DOMAIN)
        self.reconstructions = Reconstructions(DOMAIN, self.measurements)
        self.length = 0

    def write(self, event: Event, values: list[int] = []) -> Record:  # noqa: B006
        self.length += 1
        numbers = np.array(values, np.int64)
        facts = {
            "position": self.length,
            "at": 0.0,
            "analyst": "ana",
            "question": "?",
            "proposer": "",
            "run": 0,
            "event": event,
        }
        record = Record(**facts, values=numbers)
        self.measurements.advance([record])
        return record

    def measured(self, strategy: LinearMap, values: list[int], *, scale: float = 1.0, version: int = 1) -> Record:
        noise = Noise(kind=NoiseKind.LAPLACE, scale=scale)
        return self.write(Measured(strategy=strategy, noise=noise, version=version), values)

    def answers(self, queries: LinearMap) -> list[list[float]]:
        found = [reconstruction.answer(queries) for reconstruction in self.reconstructions.over(queries)]
        return [[round(float(x), 6) for x in estimate.values] for estimate in found if estimate is not None]


@pytest.fixture
def log() -> Log:
    made = Log()
    made.write(Versioned(version=1))
    return made


def test_the_finest_measurement_of_a_strategy_is_kept(log: Log) -> None:
    log.measured(EYE, [1, 2, 3], scale=5.0)
    fine = log.measured(EYE, [4, 5, 6], scale=2.0)
    log.measured(EYE, [7, 8, 9], scale=2.0)  # no finer: the first numbers stay
    log.measured(EYE, [7, 8, 9], scale=3.0)
    assert log.measurements.finest[EYE.digest] is fine
    assert noise_of(fine).scale == 2.0
    assert len(log.measurements.blocks[("a",)]) == 4


def test_a_stack_is_kept_part_by_part(log: Log) -> None:
    stack = Stack((EYE, EVERYBODY, JOINT))
    log.measured(stack, list(range(10)))
    kept = {columns: [block.values.tolist() for block in found] for columns, found in log.measurements.blocks.items()}
    assert kept == {("a",): [[0, 1, 2]], (): [[3]], ("a", "b"): [[4, 5, 6, 7, 8, 9]]}
    assert products_of(stack) == stack.parts
    assert products_of(EYE) == (EYE,)


def test_a_new_version_forgets_everything(log: Log) -> None:
    log.measured(EYE, [1, 2, 3])
    assert log.answers(EVERYBODY) == [[6.0]]
    log.write(Versioned(version=2, same_rows=True))
    assert not log.measurements.finest
    assert log.answers(EVERYBODY) == []
    log.measured(EYE, [5, 5, 5], version=1)  # a late record of the version before
    assert log.answers(EVERYBODY) == []
    log.measured(EYE, [10, 20, 30], version=2)
    assert log.answers(EVERYBODY) == [[60.0]]


def test_the_smallest_column_sets_are_tried_first(log: Log) -> None:
    log.measured(JOINT, [1, 2, 3, 4, 5, 6])
    wide = Product((mask_of(DOMAIN, ("c",), np.eye(4, dtype=int)), *EYE.masks))
    log.measured(wide, list(range(12)))
    assert log.measurements.sets_above(("a",)) == [("a",), ("a", "b"), ("a", "c")]
    assert log.measurements.sets_above(("b", "c")) == [("b", "c")]
    assert log.measurements.sets_above(()) == [(), ("a", "b"), ("a", "c")]
    assert log.answers(EVERYBODY) == [[21.0], [66.0]]
    log.measured(EYE, [5, 7, 9])
    assert log.measurements.sets_above(()) == [(), ("a",), ("a", "b"), ("a", "c")]  # found anew


def test_only_a_few_sets_are_tried(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    log.measured(JOINT, [1, 2, 3, 4, 5, 6])
    log.measured(EYE, [5, 7, 9])
    monkeypatch.setattr(views, "MOST_COLUMN_SETS", 2)
    assert log.answers(EVERYBODY) == [[21.0]]  # nothing about no column at all, then column a
    monkeypatch.setattr(views, "MOST_COLUMN_SETS", 1)
    assert log.answers(EVERYBODY) == []


def test_rows_on_fewer_columns_help(log: Log) -> None:
    log.measured(JOINT, [10, 0, 0, 0, 0, 0])
    log.measured(EVERYBODY, [17])
    ((total,),) = [answer for answer in log.answers(EVERYBODY) if answer != [17.0]]
    assert 10 < total < 17


def test_reconstructions_take_in_only_what_is_new(log: Log) -> None:
    log.measured(EYE, [1, 2, 3])
    assert log.answers(EYE) == [[1.0, 2.0, 3.0]]
    (first,) = log.reconstructions.over(EYE)
    log.measured(EYE, [3, 2, 1])
    (second,) = log.reconstructions.over(EYE)
    assert second is first
    assert len(second.noises) == 6
    assert log.answers(EYE) == [[2.0, 2.0, 2.0]]


def test_records_of_other_columns_leave_a_reconstruction_as_it_is(log: Log) -> None:
    log.measured(EYE, [1, 2, 3])
    assert log.answers(EYE) == [[1.0, 2.0, 3.0]]
    log.measured(Product((mask_of(DOMAIN, ("b",), np.eye(2, dtype=int)),)), [4, 2])
    assert log.answers(EYE) == [[1.0, 2.0, 3.0]]
    assert log.answers(EVERYBODY) == [[6.0], [6.0]]


def test_what_was_left_out_is_not_tried_again(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bursar.estimation.least_squares.MOST_MERGED_CELLS", 2)
    log.measured(EYE, [1, 2, 3])
    assert log.answers(EYE) == []
    monkeypatch.setattr("bursar.estimation.least_squares.MOST_MERGED_CELLS", 2048)
    assert log.answers(EYE) == []


def test_reconstructions_are_kept_as_long_as_they_fit(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "MOST_RECONSTRUCTION_BYTES", 1)
    log.measured(EYE, [1, 2, 3])
    log.measured(EVERYBODY, [6])
    log.measured(JOINT, [1, 2, 3, 4, 5, 6])
    for queries in (EYE, EVERYBODY, JOINT, EYE):
        assert log.answers(queries)
        assert len(log.reconstructions.states) == 1
    assert list(log.reconstructions.states)[-1] == ("a", "b")


def memory(reconstruction: Reconstruction) -> int:
    """The arrays that a reconstruction has once its rows were looked at, with the space behind them."""
    rows, spaces = reconstruction.rows, list(reconstruction.room._spaces.values())
    arrays = [*spaces, *([] if any(rows.base is space for space in spaces) else [rows])]
    return sum(array.nbytes for array in (*arrays, reconstruction.state.reduced_covariance))


def test_reconstructions_of_a_long_log_stay_within_the_limit(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that do not fit into one fill others, as many as have room: the oldest of these go."""
    limit = 30_000
    monkeypatch.setattr("bursar.estimation.least_squares.MOST_ROW_NUMBERS", 300)
    monkeypatch.setattr(views, "MOST_RECONSTRUCTION_BYTES", limit)
    monkeypatch.setattr(views, "MOST_STATE_BYTES", limit // 2)
    for n in range(300):
        log.measured((EYE, EVERYBODY, JOINT)[n % 3], range((EYE, EVERYBODY, JOINT)[n % 3].rows))
        if n % 20 == 19:
            for queries in (EYE, JOINT):
                assert log.answers(queries)
    states = log.reconstructions.states.values()
    assert len(states) == 2  # neither drove the other out
    assert all(0 < len(state.further) < 8 for state in states)
    assert sum(log.reconstructions.sizes.values()) <= limit
    taken = sum(memory(each) for state in states for each in (state.reconstruction, *state.further))
    assert limit / 2 < taken <= limit
    monkeypatch.setattr(views, "MOST_STATE_BYTES", 100 * limit)
    twin = Reconstructions(DOMAIN, log.measurements)
    assert all(len(list(twin.over(queries))) > 0 for queries in (EYE, JOINT))
    assert sum(twin.sizes.values()) > limit  # where a set of columns may have eight of them


def test_an_empty_log_answers_nothing() -> None:
    assert Log().answers(EVERYBODY) == []


def beside(log: Log) -> Log:
    """A second reader of the same log, for another thread."""
    other = Log()
    other.reconstructions = Reconstructions(DOMAIN, other.measurements, log.reconstructions.shared)
    other.write(Versioned(version=1))
    return other


def test_what_one_reader_has_taken_in_the_other_need_not(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    other = beside(log)
    taken: list[Block] = []
    add = Reconstruction.add

    def noted(self: Reconstruction, block: Block) -> bool:
        taken.append(block)
        return add(self, block)

    monkeypatch.setattr(Reconstruction, "add", noted)
    for reader, first in ((log, other), (other, log)):
        for each in (log, other):
            each.measured(EYE, [1, 2, 3])
        taken.clear()
        assert first.answers(EYE) == [[1.0, 2.0, 3.0]]
        assert len(taken) == 1
        assert reader.answers(EYE) == [[1.0, 2.0, 3.0]]
        assert len(taken) == 1


def test_readers_who_have_read_differently_far_know_what_they_have_read(log: Log) -> None:
    other = beside(log)
    for each in (log, other):
        each.measured(EYE, [1, 2, 3])
    assert log.answers(EYE) == other.answers(EYE) == [[1.0, 2.0, 3.0]]
    log.measured(EYE, [3, 2, 1])
    assert log.answers(EYE) == [[2.0, 2.0, 2.0]]
    assert other.answers(EYE) == [[1.0, 2.0, 3.0]]
    other.measured(EYE, [3, 2, 1])
    assert other.answers(EYE) == [[2.0, 2.0, 2.0]]


def test_a_state_of_another_version_is_not_taken_over(log: Log) -> None:
    other = beside(log)
    log.measured(EYE, [1, 2, 3])
    assert log.answers(EYE)
    other.write(Versioned(version=2))
    other.measured(EYE, [7, 7, 7], version=2)
    assert other.answers(EYE) == [[7.0, 7.0, 7.0]]
    assert log.answers(EYE) == [[1.0, 2.0, 3.0]]

"""What is learnt from the log, and in which order; and what a restart finds again."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.core.accounting import Allotted, Closed, Event, Failed, Measured, Noise, NoiseKind, Opened, Versioned
from bursar.core.ledger import Record
from bursar.core.queries import Mask, Product, Stack, Steps
from bursar.papers.boost.learning import Always, ConstantRate, LearningAsPrinted
from bursar.views.learner import Adaptive, Histograms, Learner, Learning, learnable, learnable_rows, rows_of
from bursar.views.measurements import ALL_ROWS
from harness.learning import cells, grid

DOMAIN = grid(4, 3, 2)
COARSE, FINE = (Noise(kind=NoiseKind.LAPLACE, scale=scale) for scale in (10.0, 1.0))
LEARNING = Learning(schedule=ConstantRate(value=0.5), heuristic=Adaptive(first=2, step=3), tau=0.1)
A0 = cells(DOMAIN, a=[0])


class Log(list[Record]):
    def add(self, event: Event, *values: int) -> int:
        self.append(
            Record(
                position=len(self) + 1,
                at=0.0,
                analyst="",
                question="",
                proposer="",
                run=0,
                event=event,
                values=np.array(values, np.int64),
            )
        )
        return len(self)

    def measured(self, query: Product | Stack, *values: int, noise: Noise = COARSE, version: int = 1) -> int:
        return self.add(Measured(strategy=query, noise=noise, version=version), *values)


def log() -> Log:
    """Version 1 of 1,000 rows."""
    made = Log()
    made.add(Versioned(version=1))
    made.measured(ALL_ROWS, 1000)
    return made


def learnt(records: Log, learning: Learning = LEARNING) -> Learner:
    learner = Learner(DOMAIN, learning)
    learner.advance(records)
    return learner


def opened(version: int = 1) -> Opened:
    scope = Product(tuple(Mask((n,), (DOMAIN[n].size,), Steps.total(DOMAIN[n].size)) for n in DOMAIN.names))
    return Opened(scope=scope, cut=50, threshold=FINE, test=FINE, version=version)


def share(learner: Learner, query: Product = A0) -> float:
    return learner.histogram.estimate(query)


def test_an_answer_above_or_below_the_estimate_moves_it() -> None:
    for value, moved in ((400, 1), (100, -1), (255, 0), (245, 0)):
        records = log()
        records.measured(A0, value)
        learner = learnt(records)
        factor = np.exp(0.5 * moved)
        assert share(learner) == pytest.approx(factor / (factor + 3), rel=1e-5)
        assert learner.recent[-1] == (abs(value - 250), COARSE)
        assert learner.count(A0) == round(1000 * share(learner))


def test_the_margin_is_a_part_of_the_error_that_was_bought() -> None:
    """tau alpha with alpha = b ln(1/beta) for noise of scale b; 4 b ln(1/beta) with the printed constants."""
    assert LEARNING.margin(COARSE, failed=False) == pytest.approx(0.1 * 10 * np.log(1000), rel=0.02)
    printed = LearningAsPrinted(schedule=ConstantRate(value=1), heuristic=Always(), tau=0.1, spread=4)
    assert printed.margin(COARSE, failed=False) == pytest.approx(0.4 * 10 * np.log(1000), rel=0.02)
    assert (printed.margin(COARSE, failed=True), LEARNING.margin(COARSE, failed=True) > 0) == (0.0, True)


def test_the_answer_after_a_failed_test() -> None:
    """As printed it is learnt from whatever it says; as published only beyond the margin. Both are penalised."""
    for learning, learns in ((LEARNING, False), (LearningAsPrinted(**vars(LEARNING)), True)):
        records = log()
        for _ in range(2):
            records.measured(A0, 900)
        ready = learnt(records, learning)
        assert ready.ready(A0)
        instance = records.add(opened())
        records.add(Failed(instance=instance, query=A0, estimate=400, version=1))
        assert not learnt(records, learning).ready(A0)
        near = ready.count(A0) + 3
        records.measured(A0, near)
        after = learnt(records, learning)
        assert (share(after) > share(ready)) is learns
        records.measured(A0, after.count(A0) + 3)  # another one, not after a test
        assert share(learnt(records, learning)) == pytest.approx(share(after))


def test_open_sparse_vectors() -> None:
    records = log()
    first, second, third = (records.add(opened()) for _ in range(3))
    assert sorted(learnt(records).live) == [first, second, third]
    records.add(Failed(instance=first, query=A0, estimate=1, version=1))
    records.add(Closed(instance=third, version=1))
    assert sorted(learnt(records).live) == [second]
    records.add(Versioned(version=2))
    learner = learnt(records)
    assert (learner.live, learner.size, learner.version) == ({}, None, 2)
    records.add(opened(version=1))  # of other data
    assert learnt(records).live == {}


def test_the_number_of_rows_is_the_finest_that_was_measured() -> None:
    records = log()
    records.measured(ALL_ROWS, 1010, noise=FINE)
    records.measured(ALL_ROWS, 900)
    assert learnt(records).size == 1010
    records.measured(ALL_ROWS, -5, noise=FINE)
    assert (learnt(records).size, learnt(records).count(A0)) == (-5, 0)


def test_answers_wait_until_the_number_of_rows_is_known() -> None:
    records, known = Log(), log()
    records.add(Versioned(version=1))
    for one in (records, known):
        one.measured(A0, 400)
        one.measured(cells(DOMAIN, b=[1]), 10)
    learner = learnt(records)
    assert (learner.count(A0), share(learner)) == (0, 0.25)
    records.measured(ALL_ROWS, 1000)
    learner.advance(records[-1:])
    assert share(learner) == share(learnt(known))
    assert share(learner, cells(DOMAIN, b=[1])) == share(learnt(known), cells(DOMAIN, b=[1]))


def test_a_new_version_starts_anew() -> None:
    records = log()
    records.measured(A0, 900)
    records.add(Versioned(version=2))
    records.measured(ALL_ROWS, 500, version=2)
    learner = learnt(records)
    assert (share(learner), len(learner.recent)) == (0.25, 0)
    records.measured(A0, 400, version=2)
    assert share(learnt(records)) > 0.25


def test_what_is_not_learnt_from() -> None:
    records = log()
    difference = Product((Mask(("a",), (4,), Steps.dense([[1, -1, 0, 0]])),))
    records.measured(difference, 100)
    records.add(Allotted(shares=()))
    many = Product((Mask(("a",), (4,), Steps.ranges([0] * 1025, [2] * 1025, 4)),))
    records.measured(many, *[900] * 1025)
    learner = learnt(records)
    assert (learner.histogram.bytes, len(learner.recent)) == (0, 0)
    small = Learning(**{**vars(LEARNING), "most_bins": 11})
    records.measured(cells(DOMAIN, a=[0], b=[0]), 900)
    assert learnt(records, small).histogram.bytes == 0
    assert learnt(records).histogram.bytes > 0


def test_every_row_of_a_measurement_is_learnt_from() -> None:
    groups = Product((Mask(("a",), (4,), Steps.identity(4)),))
    records, single = log(), log()
    records.measured(Stack((groups, cells(DOMAIN, b=[0]))), 700, 100, 100, 100, 500)
    for cell, value in enumerate((700, 100, 100, 100)):
        single.measured(cells(DOMAIN, a=[cell]), value)
    single.measured(cells(DOMAIN, b=[0]), 500)
    for query in (A0, cells(DOMAIN, b=[0])):
        assert share(learnt(records), query) == pytest.approx(share(learnt(single), query))
    assert [row.digest for row in rows_of(groups)] == [cells(DOMAIN, a=[cell]).digest for cell in range(4)]


def test_rows_of_products_are_learnt_from_as_if_each_were_measured_alone() -> None:
    """Values that are no ones, lists of cells, rows of both signs and of zeros, joint conditions; to the last bit."""
    rng, records, alone = np.random.default_rng(3), log(), Learner(DOMAIN, LEARNING)
    alone.advance(records)
    several = Mask(("a",), (4,), Steps.dense([[1, 0, 0, 2], [0, 0, 0, 0], [1, -1, 0, 0], [0, 3, 3, 0], [1, 0, 1, 1]]))
    values, joint = (Steps.dense(rng.integers(0, 3, (4, size))) for size in (3, 8))
    products = [
        Product((several, Mask(("b",), (3,), values))),
        Product((Mask(("c", "a"), (2, 4), joint),)),
        Product((Mask(("c",), (2,), Steps.identity(2)), several)),
    ]
    some = [row for row in range(4) if np.any(values.at_cells(range(3))[row])]
    assert learnable_rows(products[0]) == [4 * first + row for first in (0, 3, 4) for row in some]
    start = len(records)
    for product in products * 3:
        records.measured(product, *rng.integers(0, 900, product.rows).tolist())
    records.add(Failed(instance=99, query=products[0].row(0), estimate=3, version=1))
    records.measured(products[0], *rng.integers(0, 900, products[0].rows).tolist())
    for record in records[start:]:
        if isinstance(record.event, Failed):
            alone.failed(record.event.query)
        elif isinstance(record.event, Measured):
            rows = rows_of(record.event.strategy)
            assert [row for row, each in enumerate(rows) if learnable(each)] == learnable_rows(record.event.strategy)
            alone.learn(zip(rows, record.values.tolist(), strict=True), record.event.noise)
    together = learnt(records)
    ours, theirs = (learner.histogram.single(DOMAIN.names) for learner in (together, alone))
    assert ours is not None
    assert theirs is not None
    assert ours.histogram.steps == theirs.histogram.steps > 20
    for name in ("weights", "updates", "thresholds"):
        assert np.array_equal(getattr(ours.histogram, name), getattr(theirs.histogram, name))
    assert list(together.recent) == list(alone.recent)


def test_sums_are_learnt_with_their_values() -> None:
    total = Product((Mask(("a",), (4,), Steps.dense([[0, 10, 20, 40]])),))
    records = log()
    records.measured(total, 30_000)
    learner = learnt(records)
    q = np.array([0, 0.25, 0.5, 1])
    h = np.exp(0.5 * q) / np.exp(0.5 * q).sum()
    assert learner.count(total) == pytest.approx(1000 * 40 * float(q @ h), abs=2)


def test_columns_that_were_never_asked_together_are_not_ready() -> None:
    records = log()
    for _ in range(3):
        records.measured(A0, 900)
        records.measured(cells(DOMAIN, b=[0]), 900)
    both = cells(DOMAIN, a=[0], b=[0])
    learner = learnt(records)
    assert (learner.ready(A0), learner.ready(cells(DOMAIN, b=[0])), learner.ready(both)) == (True, True, False)
    assert learnt(records, Learning(schedule=ConstantRate(value=0.5), heuristic=Always())).ready(both)
    assert learner.count(both) == pytest.approx(1000 * share(learner) * share(learner, cells(DOMAIN, b=[0])), abs=1)


def test_how_often_estimates_were_off() -> None:
    records = log()
    assert learnt(records).missed(10) == 0.5
    records.measured(A0, 400)
    assert learnt(records).missed(150) == pytest.approx(2 / 3, rel=1e-5)
    assert learnt(records).missed(151) == pytest.approx(1 / 3, rel=1e-5)


def test_noise_does_not_count_as_an_estimate_that_is_off() -> None:
    """Half of the answers are beyond the error of 7 by their own noise, Pr[|X| >= 7] = .52 at scale 10."""
    records = log()
    for turn in range(64):
        records.measured(A0, 250 + (8 if turn % 2 else 0))
    assert learnt(records, Learning(**{**vars(LEARNING), "tau": 10.0})).missed(7) == 1 / 66
    off = log()
    for _ in range(64):
        off.measured(A0, 270)
    learner = learnt(off, Learning(**{**vars(LEARNING), "tau": 10.0}))
    assert learner.missed(7) == pytest.approx(65 / 66)
    assert learner.missed(7) == learner.misses[7]


@pytest.mark.parametrize(
    ("row", "good"), [([1, 0, 0, 2], True), ([0, 0, 0, 0], False), ([1, -1, 0, 0], False), ([-1, 0, 0, 0], False)]
)
def test_learnable(row: list[int], good: bool) -> None:
    assert learnable(Product((Mask(("a",), (4,), Steps.dense([row])),))) is good
    assert not learnable(ALL_ROWS)


def test_views_are_made_once_and_see_every_record_of_the_version() -> None:
    records, histograms = log(), Histograms()
    records.measured(A0, 900)
    histograms.advance(records)
    first = histograms.of(LEARNING, lambda: Learner(DOMAIN, LEARNING))
    assert share(first) == share(learnt(records))
    first.openings["price"] = (opened(), 1)
    assert histograms.of(LEARNING, lambda: Learner(DOMAIN, LEARNING)) is first
    assert first.openings.keys() == {"price"}
    other = Learning(**{**vars(LEARNING), "tau": 0.2})
    assert histograms.of(other, lambda: Learner(DOMAIN, other)) is not first
    records.measured(A0, 900)
    histograms.advance(records[-1:])
    assert share(histograms.of(LEARNING, lambda: Learner(DOMAIN, LEARNING))) == share(learnt(records))
    assert first.openings == {}
    records.add(Versioned(version=2))
    histograms.advance(records[-1:])
    again = histograms.of(LEARNING, lambda: Learner(DOMAIN, LEARNING))
    assert again is not first
    assert (again.version, len(histograms.records)) == (2, 1)


def test_no_bin_is_updated_more_often_than_the_log_says_before_it_is_learnt() -> None:
    """Counted row by row where rows share cells: one for each record would be too few."""
    overlapping = Stack((cells(DOMAIN, a=[0, 1]), cells(DOMAIN, a=[1, 2]), cells(DOMAIN, a=[1], b=[0])))
    records = log()
    for value in range(3):
        records.measured(overlapping, 900, 900, 900 - value)
        records.measured(A0, 0)
    histograms = Histograms()
    histograms.advance(records)
    factor = learnt(records).histogram.single(("a", "b"))
    assert factor is not None
    assert factor.histogram.updates is not None
    most = int(factor.histogram.updates.max())
    assert len(records) < most + 2 <= histograms.most_updates(10**6) + 2
    assert histograms.most_updates(1) >= 1


def test_rows_that_are_taken_together_are_the_rows_one_by_one() -> None:
    both = Product((cells(DOMAIN, a=[0], b=[0]).masks[0], Mask(("c",), (2,), Steps.identity(2))))
    three = Product((Mask(("a",), (4,), Steps.identity(4)), Mask(("b",), (3,), Steps.identity(3))))
    for product in (both, three, A0):
        assert [row.digest for row in rows_of(product)] == [product.row(row).digest for row in range(product.rows)]

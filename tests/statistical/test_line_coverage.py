"""Error bars of ranges from a sine transform, through the kernel's own noise: they cover as often as they say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from bursar.core.accounting import Measured, Mode, Noise, NoiseKind
from bursar.core.ledger import Purpose
from bursar.core.queries import Mask, Product, Steps
from bursar.estimation.sine_columns import SineColumn
from bursar.strategies.ranges import RangeFamily, sine_strategy
from harness.maps import domain_of
from harness.plans import kernel_over
from harness.small import TableSource

pytestmark = pytest.mark.heavy
ALPHA, TIMES, BETA, CELLS = 1e-6, 1000, 0.2, 700
COUNTS = np.random.default_rng(0).integers(0, 50, CELLS)


@pytest.fixture(scope="module", params=list(RangeFamily))
def distances(request: pytest.FixtureRequest) -> np.ndarray:
    """Errors over their half-widths, of a thousand measurements of one range."""
    strategy, domain = sine_strategy(request.param, "x", cells=CELLS, max_rows=10**6), domain_of(x=CELLS)
    kernel = kernel_over(domain, TableSource(COUNTS, domain), Mode.CONCENTRATED)
    noise = Noise(kind=NoiseKind.GAUSSIAN, scale=strategy.sensitivity * 50)
    wanted = Product((Mask(("x",), (CELLS,), Steps.ranges([100], [400], CELLS)),))
    found = []
    for _ in range(TIMES):
        record, _ = kernel.measure(strategy.transform, noise, analyst="ana", purpose=Purpose("", "test"), at_most=2**60)
        assert isinstance(record.event, Measured)
        line = SineColumn.of(record)
        assert line is not None
        estimate = line.answer(wanted)
        assert estimate is not None
        found.append((estimate.values[0] - COUNTS[100:400].sum()) / estimate.law.half_widths(BETA)[0])
    return np.abs(found)


@pytest.mark.parametrize(("wider", "right"), [(1.0, True), (0.72, False)], ids=["as stated", "28 % narrower"])
def test_bars_cover_as_often_as_they_say(distances: np.ndarray, wider: float, right: bool) -> None:
    """Outside more often than beta? Twin: 2 Q(.72 * 1.28) = .36, expected 356 of 1,000 where 263 is the limit."""
    limit = binom.isf(ALPHA, TIMES, BETA)
    assert bool(np.sum(distances > wider) <= limit) == right


@pytest.mark.parametrize(("wider", "right"), [(1.0, True), (1.35, False)], ids=["as stated", "35 % wider"])
def test_bars_are_no_wider_than_they_need_to_be(distances: np.ndarray, wider: float, right: bool) -> None:
    """Outside less often than .98 beta? Twin: 2 Q(1.35 * 1.28) = .084, expected 84 of 1,000 where 138 is the limit."""
    limit = binom.ppf(ALPHA, TIMES, 0.98 * BETA)
    assert bool(np.sum(distances > wider) >= limit) == right

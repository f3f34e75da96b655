"""Long sessions of reconstructions against least squares in fractions: what is known, how exactly, and what is not."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from bursar.core.accounting import Noise, NoiseKind
from bursar.core.queries import Mask, Product
from bursar.estimation import gaussian_state, least_squares
from bursar.estimation.estimate import WeightedRows
from bursar.estimation.least_squares import Block, Finer, Reconstruction
from harness.maps import domain_of, mask_of

AGES, REGIONS = 10, 2
DOMAIN = domain_of(age=AGES, region=REGIONS)
COLUMNS = ("age", "region")
SESSIONS = 100

Numbers = NDArray[np.int64]


def dense(product: Product) -> Numbers:
    """(rows, cells): the coefficients of a product over all cells, the regions running fastest."""
    numbers = {name: np.ones((1, DOMAIN[name].size), np.int64) for name in COLUMNS}
    for mask in product.masks:
        (name,) = mask.attrs
        numbers[name] = mask.at({name: np.arange(DOMAIN[name].size)})
    return np.kron(numbers["age"], numbers["region"])


def exactly(
    rows: Numbers, values: Sequence[float], variances: Sequence[float], queries: Numbers
) -> tuple[int, list[tuple[float, float] | None]]:
    """The rank of the rows, and of each query estimate and variance; None where the rows do not determine it.

    With G = R^T V^-1 R a query q is determined if G x = q has a solution x: the estimate is then x . R^T V^-1 y, and
    the variance x . q. Cells that no row and no query tells apart are one.
    """
    cells = np.unique(np.concatenate([rows, queries]).T, axis=0).T
    rows, queries = cells[: len(rows)], cells[len(rows) :]
    size, precisions = rows.shape[1], [1 / Fraction(variance) for variance in variances]
    table = [[Fraction(0)] * size + [Fraction(int(x)) for x in queries[:, cell]] for cell in range(size)]
    told = [Fraction(0)] * size
    for row, value, precision in zip(rows.tolist(), values, precisions, strict=True):
        looked_at = [cell for cell in range(size) if row[cell]]
        for i in looked_at:
            told[i] += precision * row[i] * Fraction(value)
            for j in looked_at:
                table[i][j] += precision * row[i] * row[j]
    pivots: list[int] = []
    for column in range(size):
        rank = len(pivots)
        found = next((i for i in range(rank, size) if table[i][column]), None)
        if found is None:
            continue
        table[rank], table[found] = table[found], table[rank]
        table[rank] = [x / table[rank][column] for x in table[rank]]
        for i in range(size):
            if i != rank and (factor := table[i][column]):
                table[i] = [x - factor * y if y else x for x, y in zip(table[i], table[rank], strict=True)]
        pivots.append(column)
    answers: list[tuple[float, float] | None] = []
    for number, query in enumerate(queries.tolist()):
        right = [line[size + number] for line in table]
        if any(right[len(pivots) :]):
            answers.append(None)
            continue
        x = list(zip(pivots, right, strict=False))
        answers.append((float(sum(told[i] * at for i, at in x)), float(sum(query[i] * at for i, at in x))))
    return len(pivots), answers


class Session:
    """Questions of very different scales in random order, one by one and many at once, among copies and refinements.

    No row looks at one of the ages alone or at all, as nobody may be of an age.
    """

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.known = Reconstruction(DOMAIN, COLUMNS)
        self.hidden = int(self.rng.integers(AGES))
        self.rows: list[Numbers] = []
        self.values: list[float] = []
        self.variances: list[float] = []
        self.places: list[tuple[int, int]] = []

    def run(self) -> None:
        for _ in range(int(self.rng.integers(4, 9))):
            kind = self.rng.choice(["one", "many", "finer", "copy"], p=[0.4, 0.2, 0.3, 0.1])
            if kind == "finer" and self.rows:
                self._refine()
            elif kind == "copy":
                self.known = self.known.copy()
            else:
                self._add(1 if kind == "one" else least_squares.FEWEST_AT_ONCE + 2)

    def _add(self, number: int) -> None:
        blocks: list[Block] = []
        for _ in range(number):
            product = self._product()
            scale = float(self.rng.choice([5.0, 50.0, 3000.0]) * max(1, np.abs(dense(product)).max()) ** 0.5)
            noise = Noise(kind=NoiseKind.GAUSSIAN, scale=scale)
            position = 1 + max((position for position, _ in self.places), default=0)
            blocks.append(Block(product, self.rng.integers(-99, 999, product.rows), noise, position))
            self.rows += list(dense(product))
            self.values += blocks[-1].values.tolist()
            self.variances += [noise.variance()] * product.rows
            self.places += [(position, row) for row in range(product.rows)]
        assert self.known.add_all(blocks) == []

    def _product(self) -> Product:
        """Of ages: a histogram, ranges, or sums up to 10^6; of all regions, or of each of them."""
        kind = self.rng.choice(["histogram", "ranges", "sum"])
        if kind == "histogram":
            width = int(self.rng.choice([1, 1, 2]))
            rows = np.arange(AGES) // width == np.arange(AGES // width)[:, None]
            rows = rows[self.rng.permutation(len(rows))[: int(self.rng.integers(1, len(rows) + 1))]].astype(np.int64)
        else:
            ends = np.sort([self.rng.choice(AGES + 1, 2, replace=False) for _ in range(int(self.rng.integers(1, 4)))])
            rows = ((ends[:, :1] <= np.arange(AGES)) & (np.arange(AGES) < ends[:, 1:])).astype(np.int64)
        if kind == "sum":
            rows = rows * (1 + np.arange(AGES)) * 10 ** int(self.rng.integers(0, 5))
        rows[:, self.hidden] = 0
        rows = rows[np.any(rows, axis=1)]
        ages = mask_of(DOMAIN, ("age",), rows if len(rows) else np.zeros((1, AGES), np.int64))
        by_region: tuple[Mask, ...] = (mask_of(DOMAIN, ("region",), np.eye(REGIONS, dtype=int)),)
        return Product((ages, *(by_region if self.rng.random() < 0.3 else ())))

    def _refine(self) -> None:
        position = self.places[int(self.rng.integers(len(self.places)))][0]
        places = [place for place, (record, _) in enumerate(self.places) if record == position]
        variance = min(self.variances[place] for place in places)
        scale = max(0.1, float(np.sqrt(variance) * self.rng.choice([0.5, 0.03])))
        noise = Noise(kind=NoiseKind.GAUSSIAN, scale=scale)
        if noise.variance() >= variance:
            return
        values = self.rng.integers(-99, 999, len(places))
        numbers = np.array([self.places[place][1] for place in places])
        self.known.refine([Finer(position, numbers, values, noise)])
        for place, value in zip(places, values.tolist(), strict=True):
            self.values[place], self.variances[place] = value, noise.variance()

    def wrong(self) -> list[str]:
        """What the reconstruction has wrong: the rank, and of single ages and ranges whether it answers, and what."""
        rows = np.eye(AGES, dtype=int)
        ranges = [rows[2:6].sum(axis=0), rows[:8].sum(axis=0), rows[2:3].sum(axis=0) * 1000]
        queries = [Product((mask_of(DOMAIN, ("age",), [row]),)) for row in (*rows, *ranges)]
        queries = [query for query in queries if self.known.copy().split_by(query)]
        matrix = np.concatenate([dense(query) for query in queries])
        rank, expected = exactly(np.array(self.rows), self.values, self.variances, matrix)
        found = [] if self.known.state.rank == rank else [f"rank {self.known.state.rank} of {rank}"]
        for query, truth in zip(queries, expected, strict=True):
            ours = self.known.answer(query)
            if (ours is None) != (truth is None):
                said = "nothing" if ours is None else f"{ours.values[0]} with {ours.law.mean_square()}"
                found.append(f"{said} where {truth}")
            elif ours is not None and truth is not None:
                assert isinstance(ours.law, WeightedRows)
                value, variance = truth
                near = abs(ours.values[0] - value) <= 1e-4 * np.sqrt(variance) + 1e-9 * abs(value)
                if not near or not np.isclose(ours.law.variances[0], variance, rtol=1e-5):
                    found.append(f"{ours.values[0]} with {ours.law.variances[0]} where {truth}")
        return found


def wrong_sessions(seeds: range) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for seed in seeds:
        session = Session(seed)
        session.run()
        if session.rows and (wrong := session.wrong()):
            found[seed] = wrong
    return found


def trusting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take what rounding leaves of the information of a cell that no row looks at for knowledge, as it once was."""
    monkeypatch.setattr(gaussian_state.GaussianState, "_completed_by", lambda self, rows: True)
    monkeypatch.setattr(gaussian_state, "SMALLEST_SIZE", 0.0)


def test_long_sessions_of_all_scales_know_what_fractions_know(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(least_squares, "NEGLIGIBLE_VARIANCE", 0.0)  # whole weights, though not quite the best
    assert wrong_sessions(range(SESSIONS)) == {}


def test_rounding_that_passes_for_knowledge_is_found_and_never_answered_from(monkeypatch: pytest.MonkeyPatch) -> None:
    trusting(monkeypatch)
    wrong = wrong_sessions(range(10, 14))
    assert wrong
    assert all(text.startswith("rank ") for found in wrong.values() for text in found)


def test_weights_that_do_not_add_up_would_answer_0_with_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    trusting(monkeypatch)
    monkeypatch.setattr(least_squares, "IN_SPAN", np.inf)
    wrong = wrong_sessions(range(10, 14))
    assert "0.0 with 0.0 where None" in [text for found in wrong.values() for text in found]


def test_what_a_law_worked_out_later_cannot_weigh_has_no_end_of_error(monkeypatch: pytest.MonkeyPatch) -> None:
    known, everybody = Reconstruction(DOMAIN, ("age",)), Product((mask_of(DOMAIN, ("age",), [[1] * AGES]),))
    known.add(Block(everybody, np.array([70]), Noise(kind=NoiseKind.GAUSSIAN, scale=5.0)))
    sure, unsure = known.copy().quick(everybody), known.copy().quick(everybody)
    assert sure is not None
    assert unsure is not None
    assert sure.law.tail(50.0, 0.05) < 0.05
    monkeypatch.setattr(least_squares, "IN_SPAN", -1.0)
    assert known.answer(everybody) is None
    assert unsure.law.tail(50.0, 0.05) == unsure.law.tail(1e20, 0.05) == 1.0
    assert unsure.law.half_widths(0.05)[0] > 1e20

"""Runs one system through one sequence of Boost's questions."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from benchmarks.boost_data import BLOCKS, WORKLOADS, Blocks
from benchmarks.boost_package import PRESETS
from benchmarks.boost_questions import PER_BLOCK, POOLS, Pool, Questions, single, static, stream
from benchmarks.harness import peak_mb
from benchmarks.systems.boost_caches import exact_cache, exact_cache_tree, laplace
from benchmarks.systems.boost_reference import CITIBIKE, COVID, Constants, Printed, Published, Vanilla, Warm
from benchmarks.systems.boost_world import PATH, System, World

SETTINGS = ("single", "static", "stream")
CONSTANTS = {"covid": COVID, "citibike": CITIBIKE}
FREE = (PATH.cached, PATH.estimated, "free")
"""Ways to an answer that cost nothing, but for the start of a sparse vector."""

POINTS = 400
"""On a curve."""

Simulation = Callable[[World, Constants, np.random.Generator], System]


def _fixed(maker: Callable[[World, np.random.Generator], System]) -> Simulation:
    return lambda world, constants, rng: maker(world, rng)


def _warm(warm: Warm, kind: type[Published] | type[Printed] = Published) -> Simulation:
    return lambda world, constants, rng: kind(world, replace(constants, warm=warm), rng)


SIMULATED: dict[str, dict[str, Simulation]] = {
    "single": {
        "laplace": _fixed(laplace),
        "exact-cache": _fixed(exact_cache),
        "pmw": _fixed(Vanilla),
        "boost": Published,
        "boost-printed": Printed,
    },
    "static": {
        "laplace": _fixed(laplace),
        "exact-cache-window": _fixed(exact_cache),
        "exact-cache-tree": _fixed(exact_cache_tree),
        "boost": Published,
        "boost-printed": Printed,
    },
    "stream": {
        "laplace": _fixed(laplace),
        "exact-cache-window": _fixed(exact_cache),
        "exact-cache-tree": _fixed(exact_cache_tree),
        "boost": _warm(Warm.LEAVES),
        "boost-cold": _warm(Warm.NONE),
        "boost-warm-all": _warm(Warm.ALL),
        "boost-printed": _warm(Warm.ALL, Printed),
    },
}
"""The published systems, in the order of the tables. In the published streams single blocks alone started warm, so
`boost-warm-all` has no figure in the paper: it spends about a fifth less. Updates and thresholds of an inner node start
as the average of its children's, which did better than their sum or the larger and the smaller of them.
"""


def systems(setting: str) -> list[str]:
    """All that take part in a setting, ours last."""
    return [*SIMULATED[setting], *PRESETS[setting]]


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much is asked, of how many blocks."""

    questions: int
    blocks: int


def full(setting: str) -> Size:
    """The sizes of the paper's figures."""
    return (
        Size(questions=70_000, blocks=1) if setting == "single" else Size(questions=PER_BLOCK * BLOCKS, blocks=BLOCKS)
    )


@dataclass(kw_only=True)
class Trace:
    """What happened in one run."""

    system: str
    seed: int
    real: bool = False  # whether the data are
    unlearned: float = 0.0  # share of the queries that the uniform histogram answers within alpha
    at: list[int] = field(default_factory=list)  # questions asked so far, and then
    epsilon: list[float] = field(default_factory=list)  # the mean over the blocks that have come,
    largest: list[float] = field(default_factory=list)  # and the largest
    paths: Counter[str] = field(default_factory=Counter)  # questions by the way they were answered
    cpu_s: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))  # and what that took
    failures: int = 0  # answers that were off by more than alpha
    updates: int = 0  # of all histograms
    histograms_mb: float = 0.0
    peak_mb: float = 0.0


def world_of(blocks: Blocks, pool: Pool) -> World:
    return World(
        fractions=pool.fractions(blocks), size=blocks.size, selectors=pool.selectors, bins=pool.histogram_shape
    )


def questions_of(setting: str, pool: Pool, zipf: float, size: Size, seed: int) -> Questions:
    if setting == "single":
        return single(len(pool), zipf, size.questions, seed)
    over = static if setting == "static" else stream
    return over(len(pool), zipf, size.questions, seed, blocks=size.blocks)


def noise_of(seed: int, system: str) -> np.random.Generator:
    """Every system has noise of its own."""
    return np.random.default_rng([seed, *system.encode()])


def ask(
    system: System, world: World, questions: Iterable[tuple[int, int, int, int]], trace: Trace, every: int
) -> Trace:
    """All questions, one after the other; the curve has a point after each `every` of them."""
    for asked, (query, first, last, there) in enumerate(questions, start=1):
        start = time.process_time()
        value, path = system.answer(query, first, last)
        trace.cpu_s[path] += time.process_time() - start
        trace.paths[path] += 1
        trace.failures += abs(value - world.truth(query, (first, last))) > world.alpha
        if asked % every == 0:
            trace.at.append(asked)
            trace.epsilon.append(float(system.spent[:there].mean()))
            trace.largest.append(float(system.spent.max()))
    trace.updates = getattr(system, "updates", 0)
    trace.histograms_mb = sum(h.bytes for h in getattr(system, "histograms", {}).values()) / 2**20
    trace.peak_mb = peak_mb()
    return trace


def job(workload: str, setting: str, zipf: float, size: Size, system: str, seed: int) -> Trace:
    """A run by names alone, so that it can be handed to a process of its own."""
    blocks, pool = WORKLOADS[workload](size.blocks), POOLS[workload]()
    world = world_of(blocks, pool)
    if system in SIMULATED[setting]:
        made = SIMULATED[setting][system](world, CONSTANTS[workload], noise_of(seed, system))
    else:
        made = PRESETS[setting][system](blocks, pool, world)
    trace = Trace(system=system, seed=seed, real=blocks.real, unlearned=pool.unlearned(world.fractions, world.alpha))
    questions = questions_of(setting, pool, zipf, size, seed)
    return ask(made, world, questions, trace, max(1, size.questions // POINTS))

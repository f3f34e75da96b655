"""The tasks of CacheDP (section 8.1): clients who explore a table, each question chosen from the answers before it.

25 clients take turns at random (10 for IDEBench, 1 for RRQ), each with its own error alpha |D|, alpha one of .01, .06,
.11, .16, at a failure probability of .05, and its own thresholds. Everything follows from the seed but the noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from benchmarks import cachedp_data as data
from benchmarks.cachedp_idebench import workflow_questions, workflows
from benchmarks.harness import data_folder
from bursar.compile.workload import Workload
from bursar.core.domain import Domain, IntegerRange
from bursar.core.queries import LinearMap, Mask, Product, Steps
from bursar.goal import Goal, GoalKind
from bursar.papers.cachedp.instant import strategy_of
from bursar.papers.cachedp.range_tree import QuadTree
from bursar.planner.request import PlanningRequest, Request, planning_request

Node = tuple[int, int]
Client = Generator[PlanningRequest, NDArray[np.float64], None]
"""Yields a question, is sent the noisy answers to its rows, and returns when there is nothing more to ask."""

Answering = Callable[[PlanningRequest], NDArray[np.float64]]

SHARES = (0.01, 0.06, 0.11, 0.16)
CONFIDENCE = 0.95
MOST_STEPS = 100
"""How many workloads a client of DFS asks at most."""

RANGE_CELLS = 1000


CHARTS = 27
"""Workloads of a client of IDEBench: Table 4 adds up to 270, for ten clients."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """A table and the clients who explore it."""

    name: str
    data: data.Data
    clients: Callable[[int], list[Client]]  # for a seed
    without: tuple[str, ...] = ()  # systems that cannot answer its questions
    besides: tuple[str, ...] = ()  # systems that take part in it beside those of every task


def children(node: Node, branching: int) -> list[Node]:
    """The parts of a node [low, high) of the decomposition tree, cut at low + (high - low) i / branching, rounded down.

    Edge cases: fewer parts where there are fewer cells; none for a single cell.
    """
    low, high = node
    parts = min(branching, high - low)
    if parts < 2:
        return []
    cuts = [low + (high - low) * i // parts for i in range(parts + 1)]
    return list(pairwise(cuts))


def ranges(domain: Domain, nodes: Sequence[Node]) -> Product:
    """How many rows lie in each range of cells of the only column."""
    name = domain.names[0]
    size = domain[name].size
    lows, highs = zip(*nodes, strict=True)
    return Product((Mask((name,), (size,), Steps.ranges(lows, highs, size)),))


def request(queries: LinearMap, goal: Goal) -> PlanningRequest:
    """A question that needs no SQL; its text is the digest of what it asks."""
    rows = np.arange(queries.rows)
    labels = tuple((int(row),) for row in rows)
    workload = Workload(map=queries, keys=("row",), labels=labels, outputs=("count",), index=rows[:, None])
    return planning_request(Request(text=queries.digest, workload=workload, goal=goal, analyst="client"))


def breadth_first(domain: Domain, goal: Goal, *, branching: int, least: float) -> Client:
    """From the root down, one workload per level: the children of all nodes whose noisy count is at least `least`."""
    level = [(0, domain[domain.names[0]].size)]
    while level:
        counts = yield request(ranges(domain, level), goal)
        kept = [node for node, count in zip(level, counts, strict=True) if count >= least]
        level = [child for node in kept for child in children(node, branching)]


def quarters_first(domain: Domain, goal: Goal, *, least: float) -> Client:
    """The same over two columns: a node is a rectangle, and its children are its quarters."""
    sizes = domain.sizes(domain.names)
    tree = QuadTree((sizes[0], sizes[1]))
    level = [tree.root]
    while level:
        queries, level = strategy_of(level, domain.names, domain)  # in the order of its rows
        counts = yield request(queries, goal)
        kept = [node for node, count in zip(level, counts, strict=True) if count >= least]
        level = [child for node in kept for child in tree.children(node)]


def depth_first(
    domain: Domain, goal: Goal, *, branching: int, most: float, rng: np.random.Generator, steps: int = MOST_STEPS
) -> Client:
    """Ask the children of the current node, until a noisy count lies in [1, `most`].

    Go on to the smallest child of at least 1 that was not visited; where there is none go up 1 to depth levels, at
    random, and at the root, with nowhere to go up, begin again. At most `steps` workloads.
    """
    path, visited = [(0, domain[domain.names[0]].size)], set[Node]()
    asked = 0
    while asked < steps:
        parts = children(path[-1], branching)
        ahead: list[tuple[float, Node]] = []
        if parts:
            counts = yield request(ranges(domain, parts), goal)
            asked += 1
            if any(1 <= count <= most for count in counts):
                return
            pairs = zip(counts.tolist(), parts, strict=True)
            ahead = sorted((count, part) for count, part in pairs if count >= 1 and part not in visited)
        if ahead:
            path.append(ahead[0][1])
            visited.add(ahead[0][1])
        elif len(path) > 1:
            del path[-int(rng.integers(1, len(path))) :]
        else:
            visited.clear()


def random_ranges(domain: Domain, rng: np.random.Generator, questions: int) -> Client:
    """RRQ: [s, s + l) with s ~ N(500, 10), l ~ N(320, 10), ends rounded; total squared error ~ N(250000, 25000)."""
    starts, lengths = rng.normal(500, 10, questions), rng.normal(320, 10, questions)
    lows, highs = np.rint(starts).astype(int), np.rint(starts + lengths).astype(int)
    errors = rng.normal(250_000, 25_000, questions)
    for low, high, error in zip(lows.tolist(), highs.tolist(), errors.tolist(), strict=True):
        goal = Goal(kind=GoalKind.RMSE, amount=math.sqrt(error), confidence=CONFIDENCE)
        yield request(ranges(domain, [(low, high)]), goal)


def converse(clients: Sequence[Client], rng: np.random.Generator, answer: Answering) -> None:
    """Let clients ask, drawn with replacement until none has a question left."""
    waiting = [(client, next(client)) for client in clients]
    while waiting:
        place = int(rng.integers(len(waiting)))
        client, question = waiting[place]
        try:
            waiting[place] = client, client.send(answer(question))
        except StopIteration:
            waiting.pop(place)


def bfs(clients: int = 25) -> Task:
    return _breadth("bfs", data.adult_ages(), clients, branching=2)


def dfs(clients: int = 25, steps: int = MOST_STEPS) -> Task:
    return _depth("dfs", data.adult_countries(), clients, branching=2, steps=steps)


def taxi(clients: int = 25) -> Task:
    """Quarters of the city are ranges of one column here; for the Pioneer of the paper they are not."""
    return replace(_breadth("taxi", data.taxi_squares(), clients, branching=4), without=("pioneer",))


def taxi_pairs(clients: int = 25) -> Task:
    """The same squares as pairs of a latitude and a longitude, for which section 8.1.2 has a quad-tree.

    Without APEx, which simulates a full tree over both columns: minutes for every workload.
    """
    table = data.taxi_sides()

    def client(rng: np.random.Generator) -> Client:
        goal, least = _goal(rng, table), rng.uniform(0.01, 0.03) * table.size
        return quarters_first(table.domain, goal, least=least)

    return Task(
        name="taxi-pairs",
        data=table,
        clients=lambda seed: [client(_rng(seed, i)) for i in range(clients)],
        without=("apex", "apex-cache", "pioneer"),
        besides=("cachedp-quads",),
    )


def taxi_dfs(clients: int = 25, steps: int = MOST_STEPS) -> Task:
    return replace(_depth("taxi-dfs", data.taxi_squares(), clients, branching=4, steps=steps), without=("pioneer",))


def rrq(questions: int = 50_000) -> Task:
    """One client. The paper's table is synthetic too, and no figure depends on it."""
    import pandas as pd

    domain = Domain((IntegerRange(name="id", lower=0, upper=RANGE_CELLS - 1, null=0),))
    frame = pd.DataFrame({"id": np.arange(100_000) % RANGE_CELLS})
    table = data.Data(domain=domain, frame=frame, size=len(frame), real=False)
    return Task(name="rrq", data=table, clients=lambda seed: [random_ranges(domain, _rng(seed, 0), questions)])


def idebench(clients: int = 10, questions: int = CHARTS) -> Task:
    """Ten clients ask the same 27 workloads, each with its own error; each selected bin is a row (section 7)."""
    return _charts("idebench", clients, questions, apart=True)


def idebench_summed(clients: int = 10, questions: int = CHARTS) -> Task:
    """The same with the sum over the selected bins, as the SQL of the workflows has it."""
    return _charts("idebench-summed", clients, questions, apart=False)


def explorer(questions: int = CHARTS) -> Task:
    """Fig. 7: one client who runs through the workflows one after the other, at the least error."""
    table = data.flights()
    asked = _run_through(table, apart=True)
    goal = Goal(kind=GoalKind.ERROR, amount=SHARES[0] * table.size, confidence=CONFIDENCE)
    return Task(name="explorer", data=table, clients=lambda seed: [_scripted(asked[:questions], goal)])


TASKS: dict[str, Callable[..., Task]] = {
    "bfs": bfs,
    "dfs": dfs,
    "taxi": taxi,
    "taxi-pairs": taxi_pairs,
    "taxi-dfs": taxi_dfs,
    "rrq": rrq,
    "idebench": idebench,
    "idebench-summed": idebench_summed,
    "explorer": explorer,
}


def _breadth(name: str, table: data.Data, clients: int, branching: int) -> Task:
    def client(rng: np.random.Generator) -> Client:
        goal, least = _goal(rng, table), rng.uniform(0.01, 0.03) * table.size
        return breadth_first(table.domain, goal, branching=branching, least=least)

    return Task(name=name, data=table, clients=lambda seed: [client(_rng(seed, i)) for i in range(clients)])


def _depth(name: str, table: data.Data, clients: int, branching: int, steps: int) -> Task:
    def client(rng: np.random.Generator) -> Client:
        goal, most = _goal(rng, table), rng.uniform(0.0002, 0.002) * table.size
        return depth_first(table.domain, goal, branching=branching, most=most, rng=rng, steps=steps)

    return Task(name=name, data=table, clients=lambda seed: [client(_rng(seed, i)) for i in range(clients)])


def _charts(name: str, clients: int, questions: int, *, apart: bool) -> Task:
    """All clients ask the first questions of the workflows, one workflow after the other."""
    table = data.flights()
    asked = _run_through(table, apart=apart)[:questions]

    def made(seed: int) -> list[Client]:
        return [_scripted(asked, _goal(_rng(seed, i), table)) for i in range(clients)]

    return Task(name=name, data=table, clients=made, without=("pioneer",))


def _run_through(table: data.Data, *, apart: bool) -> list[Product]:
    return [q for flow in workflows(data_folder()) for q in workflow_questions(table.domain, flow, apart=apart)]


def _scripted(questions: Sequence[Product], goal: Goal) -> Client:
    for queries in questions:
        yield request(queries, goal)


def _goal(rng: np.random.Generator, table: data.Data) -> Goal:
    return Goal(kind=GoalKind.ERROR, amount=float(rng.choice(SHARES)) * table.size, confidence=CONFIDENCE)


def _rng(seed: int, client: int) -> np.random.Generator:
    return np.random.default_rng([seed, client])

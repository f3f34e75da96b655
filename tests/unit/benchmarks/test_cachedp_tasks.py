"""The tasks of CacheDP: the tree, the clients and the data behind them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from benchmarks import cachedp_data, cachedp_idebench, cachedp_tasks
from benchmarks.cachedp import figures
from benchmarks.cachedp_run import Trace
from benchmarks.cachedp_tasks import breadth_first, children, converse, depth_first, ranges, request

from bursar.core.domain import Domain, IntegerRange
from bursar.goal import Goal, GoalKind

pytestmark = pytest.mark.thinned(3)

DOMAIN = Domain((IntegerRange(name="id", lower=0, upper=7, null=0),))
GOAL = Goal(kind=GoalKind.ERROR, amount=10.0)
COUNTS = np.array([0, 0, 5, 100, 40, 40, 0, 3])


def nodes_of(size: int, branching: int) -> set[tuple[int, int]]:
    level, found = [(0, size)], set[tuple[int, int]]()
    while level:
        found |= set(level)
        level = [child for node in level for child in children(node, branching)]
    return found


@pytest.mark.parametrize(("size", "nodes"), [(41, 81), (74, 147), (1000, 1999), (8, 15)])
def test_a_binary_tree_has_the_cache_sizes_of_table_3(size: int, nodes: int) -> None:
    assert len(nodes_of(size, 2)) == nodes


def test_the_tree_of_the_papers_example() -> None:
    assert {(0, 8), (0, 4), (4, 8), (4, 6), (6, 7), (3, 4)} <= nodes_of(8, 2)
    assert len(nodes_of(4096, 4)) == (4 * 4096 - 1) // 3


@pytest.mark.parametrize(("node", "branching"), [((3, 17), 2), ((0, 3), 4), ((5, 6), 2), ((0, 4096), 4)])
def test_children_cut_a_node_into_parts_that_are_nearly_equal(node: tuple[int, int], branching: int) -> None:
    parts = children(node, branching)
    cells = [cell for low, high in parts for cell in range(low, high)]
    assert cells == (list(range(*node)) if node[1] - node[0] > 1 else [])
    lengths = [high - low for low, high in parts]
    assert max(lengths, default=0) - min(lengths, default=0) <= 1


def asked_by(client: cachedp_tasks.Client, counts: np.ndarray = COUNTS) -> list[list[int]]:
    """The exact answers to what a client asks when it gets them."""
    seen: list[list[int]] = []

    def answer(question: cachedp_tasks.PlanningRequest) -> np.ndarray:
        values = question.workload.map.apply(lambda attrs: counts)
        seen.append(values.tolist())
        return values.astype(float)

    converse([client], np.random.default_rng(0), answer)
    return seen


def test_breadth_first_asks_for_the_children_of_every_large_node() -> None:
    seen = asked_by(breadth_first(DOMAIN, GOAL, branching=2, least=80))
    assert seen == [[188], [105, 83], [0, 105, 80, 3], [5, 100, 40, 40]]


def test_quarters_of_two_columns_are_asked_for_as_those_of_numbered_squares_are() -> None:
    """The pairs task and the squares task ask for the same counts, level by level, in whatever order."""
    by_side, squares = cachedp_data.taxi_sides(), cachedp_data.taxi_squares()
    sides = by_side.domain.sizes(by_side.domain.names)
    places = [by_side.frame[name].to_numpy() for name in by_side.domain.names]
    pairs = np.bincount(np.ravel_multi_index(places, sides), minlength=4096).reshape(sides)
    numbered = np.bincount(squares.frame["square"].to_numpy(), minlength=4096)
    by_pairs = asked_by(cachedp_tasks.quarters_first(by_side.domain, GOAL, least=150), pairs)
    by_number = asked_by(breadth_first(squares.domain, GOAL, branching=4, least=150), numbered)
    assert [sorted(level) for level in by_pairs] == [sorted(level) for level in by_number]
    assert len(by_pairs) > 4


def test_depth_first_follows_the_smallest_and_stops_at_a_small_count() -> None:
    rng = np.random.default_rng(0)
    seen = asked_by(depth_first(DOMAIN, GOAL, branching=2, most=4, rng=rng))
    assert seen == [[105, 83], [80, 3]]


def test_depth_first_goes_up_at_a_dead_end_and_ends_after_its_steps() -> None:
    rng = np.random.default_rng(0)
    seen = asked_by(depth_first(DOMAIN, GOAL, branching=2, most=0.5, rng=rng, steps=30))
    assert len(seen) == 30
    assert seen[:3] == [[105, 83], [80, 3], [0, 3]]
    assert [5, 100] in seen  # the other half of the domain was reached too


def test_clients_follow_from_the_seed() -> None:
    def goals(seed: int) -> list[float]:
        return [next(client).goal.amount for client in cachedp_tasks.bfs(clients=6).clients(seed)]

    assert goals(3) == goals(3)
    assert goals(3) != goals(4)
    assert set(goals(3)) <= {share * 48_842 for share in cachedp_tasks.SHARES}


def test_random_ranges_have_the_law_of_the_paper() -> None:
    first = [q.workload.map.masks[0].steps.at.tolist() for q in cachedp_tasks.rrq(questions=400).clients(0)[0]]
    again = [q.workload.map.masks[0].steps.at.tolist() for q in cachedp_tasks.rrq(questions=400).clients(0)[0]]
    assert first == again
    lows, highs = np.array(first).T
    assert abs(lows.mean() - 500) < 3
    assert abs((highs - lows).mean() - 320) < 3
    errors = [q.goal.amount**2 for q in cachedp_tasks.rrq(questions=400).clients(0)[0]]
    assert abs(np.mean(errors) - 250_000) < 7_000
    assert abs(np.std(errors) - 25_000) < 4_000


def test_converse_serves_every_client_until_the_end_in_an_order_of_the_seed() -> None:
    def order(seed: int) -> list[str]:
        seen: list[str] = []

        def answer(question: cachedp_tasks.PlanningRequest) -> np.ndarray:
            seen.append(question.text)
            return np.zeros(1)

        clients = [_twice(node) for node in ((0, 1), (1, 2), (2, 3))]
        converse(clients, np.random.default_rng(seed), answer)
        return seen

    assert order(1) == order(1)
    assert len(order(1)) == 6
    assert {tuple(order(seed)) for seed in range(8)} != {tuple(order(1))}


def _twice(node: tuple[int, int]) -> cachedp_tasks.Client:
    for _ in range(2):
        yield request(ranges(DOMAIN, [node]), GOAL)


def test_squares_number_quarters_as_ranges() -> None:
    (south, north), (west, east) = cachedp_data.CITY
    corners = cachedp_data.square_of([south, south, north, north, -90.0], [west, east, west, east, 0.0])
    assert corners.tolist() == [0, 1365, 2730, 4095, 1365]  # 0101..., 1010...; strays go to the nearest square
    inner = cachedp_data.square_of([0.75 * south + 0.25 * north], [0.25 * west + 0.75 * east])
    assert children((0, 4096), 4)[1][0] <= inner[0] < children((0, 4096), 4)[1][1]


@pytest.mark.parametrize("name", ["adult_ages", "adult_countries", "taxi_squares", "flights"])
def test_stand_ins_have_the_domain_and_the_size_of_the_real_tables(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BURSAR_DATA", "no such folder")
    made = getattr(cachedp_data, name)()
    assert not made.real
    assert set(made.frame.columns) == set(made.domain.names)
    rows = {"adult_ages": 48_842, "adult_countries": 48_842, "taxi_squares": 10_000, "flights": 336_776}[name]
    assert made.size == rows
    assert 0.95 * rows < len(made.frame) <= rows


def test_the_eight_columns_of_the_workflows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BURSAR_DATA", "no such folder")
    domain = cachedp_data.flights().domain
    assert set(domain.names) == set(cachedp_idebench.COLUMNS.values())
    for name, width in cachedp_data.WIDTHS.items():
        low, high = cachedp_data.SPANS[name]
        edges = cachedp_data.edges_of(name)
        assert (edges[0], edges[-1]) == (low, high)
        assert all(edge % width == 0 for edge in edges[1:-1])
        assert max(after - before for before, after in pairwise(edges)) == width


def test_a_column_has_one_binning_whatever_width_a_chart_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BURSAR_DATA", "no such folder")
    domain = cachedp_data.flights().domain
    charts = [{"name": str(w), "binning": [{"dimension": "DISTANCE", "width": w}]} for w in (225.0, 376.0, 390.0)]
    asked = cachedp_idebench.workflow_questions(domain, charts, apart=False)
    assert {queries.digest for queries in asked} == {asked[0].digest}
    assert asked[0].rows == domain["distance"].declared == 23


WORKFLOW = [
    {"name": "a", "binning": [{"dimension": "DISTANCE", "width": 225.0}, {"dimension": "TAXI_IN", "width": 9.0}]},
    {"name": "b", "binning": [{"dimension": "ORIGIN"}]},
    {"name": "c", "binning": [{"dimension": "ORIGIN_STATE_ABR"}]},
    {"name": "b", "source": "a"},
    {"name": "a", "selection": "((DISTANCE >= 225.0 and DISTANCE < 450.0) or (DISTANCE >= 0.0 and DISTANCE < 225.0))"},
    {"name": "c", "source": "a"},
]


def test_a_workflow_asks_charts_when_they_are_made_linked_and_filtered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BURSAR_DATA", "no such folder")
    domain = cachedp_data.flights().domain
    asked = cachedp_idebench.workflow_questions(domain, WORKFLOW, apart=False)
    assert [(q.attrs, q.rows) for q in asked] == [
        (("distance",), 23),
        (("origin",), 3),
        (("origin",), 3),
        (("origin", "distance"), 3),
    ]
    selection = asked[-1].masks[1].steps
    assert selection.at_cells(np.arange(selection.size)).sum() == sum(
        edge < 450 for edge in cachedp_data.edges_of("distance")
    )
    assert all(norm.largest() == 1 for q in asked for norm in q.norms(1))  # bins do not overlap


def test_selected_bins_can_be_asked_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BURSAR_DATA", "no such folder")
    domain = cachedp_data.flights().domain
    *others, filtered = cachedp_idebench.workflow_questions(domain, WORKFLOW, apart=True)
    together = cachedp_idebench.workflow_questions(domain, WORKFLOW, apart=False)
    assert [q.digest for q in others] == [q.digest for q in together[:-1]]
    assert (filtered.attrs, filtered.rows) == (("origin", "distance"), 3 * 2)
    bins, selection = (q.masks[1].steps for q in (filtered, together[-1]))
    cells = np.arange(selection.size)
    assert np.array_equal(bins.at_cells(cells).sum(axis=0), selection.at_cells(cells)[0])


def test_a_selection_of_values_that_do_not_exist_asks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BURSAR_DATA", "no such folder")
    domain = cachedp_data.flights().domain
    steps = [
        {"name": "a", "binning": [{"dimension": "UNIQUE_CARRIER"}]},
        {"name": "b", "binning": [{"dimension": "ORIGIN"}]},
        {"name": "b", "source": "a"},
        {"name": "a", "selection": "((UNIQUE_CARRIER = 'OH (1)'))"},
        {"name": "a", "selection": "((UNIQUE_CARRIER = 'OH (1)') or (UNIQUE_CARRIER = 'AA'))"},
    ]
    asked = cachedp_idebench.workflow_questions(domain, steps, apart=False)
    assert len(asked) == 4
    assert asked[-1].masks[1].steps.at_cells(np.arange(16)).tolist() == [[0, 1, *[0] * 14]]


def test_stand_in_workflows_ask_something() -> None:
    domain = cachedp_data.flights().domain
    for seed in range(5):
        workflow = cachedp_idebench.stand_in_workflow(np.random.default_rng(seed))
        assert len(workflow) == cachedp_idebench.INTERACTIONS
        assert len(cachedp_idebench.workflow_questions(domain, workflow, apart=False)) >= 10


def test_an_answer_that_is_given_again_fails_once() -> None:
    """Ten workloads, eight of them the same answer, which misses its goal."""
    run = Trace(system="cachedp", seed=0, real=False, epsilon=[0.1] * 10, cpu_s=[0.0] * 10, failures=8)
    run.answers = {("a", b"1"): True, ("a", b"2"): False, ("b", b"1"): False}
    found = figures([run])
    assert found["failure_rate"] == pytest.approx(0.8)
    assert found["failed_answers"] == pytest.approx(1 / 3)

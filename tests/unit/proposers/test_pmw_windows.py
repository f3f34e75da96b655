"""Windows of partitions, tested and learnt node by node: which branch is taken, what is held and what is promised."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bursar import presets
from bursar.core.accounting import Event, Failed, Measured, Noise, NoiseKind, Opened
from bursar.core.queries import Mask, Product, Steps
from bursar.estimation.estimate import meets
from bursar.goal import GoalKind
from bursar.papers.boost import PUBLISHED
from bursar.papers.boost.learning import Always, ConstantRate, Never
from bursar.papers.boost.tilings import Flat, Overlapping
from bursar.planner.choose import Preset, offers
from bursar.planner.offer import Offer
from bursar.proposers.pmw import TIGHT, PmwSettings
from bursar.proposers.pmw_windows import PmwWindows, SummedLaw
from bursar.tails import tail
from bursar.views.learner import Adaptive, Learning
from bursar.views.learner_tree import Node, split, windowed
from harness.learning import Stage, cells, grid, request

DOMAIN = grid(8, 2, 3, partition="a")
TABLE = np.full((8, 2, 3), 100)
B0, C0 = cells(DOMAIN, b=[0]), cells(DOMAIN, c=[0])
GOAL = {"within": 400.0, "beta": 0.05}


def learning(heuristic: object) -> Learning:
    return Learning(schedule=ConstantRate(value=0.1), heuristic=heuristic)  # type: ignore[arg-type]


TESTING = replace(TIGHT, learning=learning(Always()))
"""A node is tested as soon as it has learnt anything."""
BUYING = replace(TIGHT, learning=learning(Never()))


def over(low: int, high: int, query: Product) -> Product:
    return Product((*cells(DOMAIN, a=range(low, high + 1)).masks, *query.masks))


def stage(settings: PmwSettings = TESTING, *, table: np.ndarray = TABLE, through: int = 7, **how: object) -> Stage:
    """Without noise."""
    preset = Preset("test", (PmwWindows(settings, **how),))  # type: ignore[arg-type]
    return Stage(table=table, preset=preset, seed=None, partition="a", through=through)


def offer_for(made: Stage, query: Product, *, within: float = 400.0, beta: float = 0.05) -> Offer:
    (offer,) = made.preset.proposers[0].offers(request(query, within=within, beta=beta), made.planner.views())
    return offer


def events(made: Stage, kind: type[Event]) -> list[Event]:
    return [record.event for record in made.records if isinstance(record.event, kind)]


def windows(event: Event) -> list[Node]:
    """Of a purchase, node by node."""
    assert isinstance(event, Measured)
    parts = getattr(event.strategy, "parts", (event.strategy,))
    return [found[0] for part in parts if (found := windowed(part, DOMAIN)) is not None]


def taught(made: Stage, *nodes: Node, query: Product = B0) -> Stage:
    for node in nodes:
        made.ask(over(*node, query), **GOAL)
    return made


def test_a_window_is_bought_by_its_nodes_in_one_purchase_that_keeps_the_goal() -> None:
    made = stage()
    offer, estimate = made.ask(over(1, 6, B0), **GOAL)
    (event,) = events(made, Measured)
    assert windows(event) == split((1, 6))
    assert estimate.values.tolist() == [1800]
    assert isinstance(offer.law, SummedLaw)
    noise = event.noise  # type: ignore[attr-defined]
    assert 0.045 < tail([1.0] * 4, [noise] * 4, 400.0) <= 0.05


def test_every_node_has_an_exact_cache_of_its_own() -> None:
    made = stage(BUYING)
    made.ask(over(1, 6, B0), **GOAL)
    again, estimate = made.ask(over(1, 6, B0), **GOAL)
    assert again.free
    assert estimate.values.tolist() == [1800]
    made.ask(over(2, 7, B0), within=2000.0, beta=0.05)
    assert windows(events(made, Measured)[-1]) == [(4, 7)]  # 2 to 3 was known
    tighter = offer_for(made, over(1, 6, B0), within=100.0)
    assert windows(tighter.price.events[0]) == split((1, 6))


def test_the_largest_run_is_tested_and_the_others_are_bought() -> None:
    made = taught(stage(), (1, 1), (4, 5), (6, 6), query=C0)
    opened, bought, if_failed = offer_for(made, over(1, 6, B0), within=900.0).price.events
    assert isinstance(opened, Opened)
    assert windowed(opened.scope, DOMAIN)[0] == (4, 6)  # type: ignore[index]
    assert windows(bought) == [(1, 1), (2, 3)]
    assert windows(if_failed) == [(4, 5), (6, 6)]


def test_shares_of_the_error_are_by_rows_and_of_beta_by_halves() -> None:
    made = taught(stage(), (4, 5), (6, 6), query=C0)
    offer = offer_for(made, over(1, 6, B0), within=900.0)
    opened, bought, if_failed = offer.price.events
    assert opened.cut == 225  # type: ignore[union-attr]  # half of half of 900
    assert tail([1.0] * 2, [bought.noise] * 2, 450.0) <= 0.025  # type: ignore[union-attr]
    assert tail([1.0] * 2, [if_failed.noise] * 2, 450.0) <= 0.025  # type: ignore[union-attr]
    assert offer.law.tail(900.0, 0.0) <= 0.05
    assert offer.law.tail(899.0, 0.0) == 1.0
    assert meets(offer.law, request(B0, within=900.0, beta=0.05).goal)


def test_a_test_of_the_whole_window_has_all_ready_nodes_in_it() -> None:
    made = taught(stage(whole=True), (1, 1), (4, 5), query=C0)
    offer = offer_for(made, over(1, 6, B0), within=900.0)
    opened, bought, if_failed = offer.price.events
    assert windowed(opened.scope, DOMAIN)[0] == (1, 6)  # type: ignore[index, union-attr]
    assert opened.cut == 450  # type: ignore[union-attr]
    assert windows(bought) == [(2, 3), (6, 6)]
    assert windows(if_failed) == [(1, 1), (4, 5)]
    assert tail([1.0] * 4, [bought.noise] * 4, 900.0) <= 0.05 / 7  # type: ignore[union-attr]


@pytest.mark.parametrize("whole", [False, True])
def test_one_sparse_vector_per_exact_window(whole: bool) -> None:
    made = taught(stage(whole=whole), (0, 3), (4, 5), query=C0)
    made.ask(over(0, 5, B0), **GOAL)
    assert len(events(made, Opened)) == 1
    free = made.spent
    offer, estimate = made.ask(over(0, 5, cells(DOMAIN, b=[1])), **GOAL)
    assert [type(event) for event in offer.price.events] == [Failed, Measured]
    assert made.spent == free
    assert estimate.values.tolist() == [1800]
    made.ask(over(0, 3, cells(DOMAIN, b=[1])), **GOAL)  # inside, and yet another window
    assert len(events(made, Opened)) == 2


@pytest.mark.parametrize("whole", [False, True])
def test_after_a_failed_test_all_estimated_nodes_are_bought_and_learn(whole: bool) -> None:
    table = TABLE.copy()
    table[:, 0] *= 9
    made = taught(stage(table=table, whole=whole), (0, 3), (4, 5), query=C0)
    offer, estimate = made.ask(over(0, 5, B0), **GOAL)
    assert estimate.values.tolist() == [6 * 2700]
    assert len(events(made, Failed)) == 1
    assert windows(events(made, Measured)[-1]) == [(0, 3), (4, 5)]
    assert offer.price.at_most == made.price(offer.price.events)
    learnt = made.preset.proposers[0].tree(made.planner.views())  # type: ignore[attr-defined]
    assert all(learnt.nodes[node].histogram.estimate(B0) > 0.5 for node in ((0, 3), (4, 5)))
    assert learnt.live[0, 5] == {}


def test_groups_share_the_test_and_the_purchase() -> None:
    groups = Mask(("b",), (2,), Steps.dense(np.eye(2, dtype=np.int64)))
    query = Product((*cells(DOMAIN, a=range(6)).masks, groups))
    made = stage()
    _, estimate = made.ask(query, **GOAL)
    assert estimate.values.tolist() == [1800, 1800]
    looser, estimate = made.ask(Product((*cells(DOMAIN, a=range(6)).masks, *C0.masks)), **GOAL)
    assert isinstance(looser.price.events[0], Opened)
    assert estimate.values.tolist() == [1200]
    again, _ = made.ask(query, **GOAL)
    assert again.free


def test_what_is_no_single_window_is_bought_as_it_is() -> None:
    gap = Product((*cells(DOMAIN, a=[0, 2]).masks, *B0.masks))
    each = Product((Mask(("a",), (8,), Steps.dense(np.eye(8, dtype=np.int64))), *B0.masks))
    for query in (gap, each):
        made = stage()
        offer, estimate = made.ask(query, **GOAL)
        assert [event.strategy.digest for event in offer.price.events] == [query.digest]  # type: ignore[union-attr]
        assert estimate.values.sum() == made.truth(query).sum()
    made = stage(cut=Overlapping(longest=4))
    made.ask(over(0, 4, B0), **GOAL)
    made.ask(over(1, 4, B0), **GOAL)
    assert [windows(event) for event in events(made, Measured)] == [[(0, 4)], [(1, 1), (2, 3), (4, 4)]]


def test_one_histogram_per_partition() -> None:
    made = stage(cut=Flat())
    made.ask(over(2, 5, B0), **GOAL)
    assert windows(events(made, Measured)[0]) == [(2, 2), (3, 3), (4, 4), (5, 5)]


def test_partitions_without_rows_are_known_to_have_none() -> None:
    table = TABLE.copy()
    table[2:4] = 0
    made = stage(table=table)
    made.ask(over(1, 6, B0), **GOAL)
    assert windows(events(made, Measured)[0]) == [(1, 1), (4, 5), (6, 6)]
    offer, estimate = made.ask(over(2, 3, B0), **GOAL)
    assert offer.free
    assert estimate.values.tolist() == [0]


def test_a_stream_starts_warm() -> None:
    made = stage(replace(TIGHT, learning=learning(Adaptive(first=1))), through=0)
    made.ask(over(0, 0, B0), within=50.0, beta=0.05)
    made.seal(1)
    made.ask(over(1, 1, C0), within=50.0, beta=0.05)
    learnt = made.preset.proposers[0].tree(made.planner.views())  # type: ignore[attr-defined]
    assert set(learnt.nodes) == {(0, 0), (1, 1)}
    with pytest.raises(Exception, match="no answer"):
        made.planner.choose(request(over(0, 2, B0), within=50.0, beta=0.05))  # not sealed


@pytest.mark.parametrize(
    ("settings", "changes"), [(replace(TESTING, least_cells=2), {}), (TESTING, {"kind": GoalKind.RMSE})]
)
def test_where_no_offer_is_made(settings: PmwSettings, changes: dict[str, object]) -> None:
    made = stage(settings)
    asked = request(over(0, 3, B0), **GOAL)
    asked = replace(asked, goal=replace(asked.goal, **changes))  # type: ignore[arg-type]
    alone = replace(made.preset, proposers=made.preset.proposers[:1])
    assert list(offers(alone, asked, made.planner.views())) == []
    without = Stage(table=TABLE, preset=made.preset, seed=None)
    assert list(offers(alone, request(B0, **GOAL), without.planner.views())) == []


def test_published_constants_claim_beta_and_say_what_is_proved() -> None:
    published = replace(PUBLISHED, learning=learning(Always()))
    made = taught(stage(published, whole=True), (0, 3), query=C0)
    offer = offer_for(made, over(0, 3, B0), within=900.0)
    assert offer.law.tail(900.0, 0.0) == pytest.approx(0.05)
    assert "fails with up to 0.097" in offer.note


def test_the_preset_keeps_its_way_with_windows_where_data_have_partitions() -> None:
    kept = presets.under(None, presets.boost, DOMAIN)
    assert [type(one) for one in kept.proposers] == [PmwWindows]
    assert presets.under(None, presets.boost, grid(2, 3)) == presets.boost
    assert presets.boost.sequential


@pytest.mark.parametrize("parts", [1, 3])
def test_the_law_of_answers_that_are_added_up(parts: int) -> None:
    noise = Noise(kind=NoiseKind.LAPLACE, scale=20.0)
    law = SummedLaw(noise=noise, parts=parts, rows=2)
    each = tail([1.0] * parts, [noise] * parts, 100.0)
    assert law.tail(100.0, 0.0) == pytest.approx(1 - (1 - each) ** 2)
    width = law.half_widths(0.05)
    assert width.shape == (2,)
    assert law.tail(width[0] + 1, 0.0) <= 0.05 < law.tail(0.98 * width[0] - 1, 0.0)
    assert law.mean_square() == pytest.approx(parts * noise.variance())

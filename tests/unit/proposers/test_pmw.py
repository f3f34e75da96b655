"""The proposer that tests estimates: which branch it takes, what it holds, bids and promises."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bursar.core.accounting import Event, Failed, Measured, Mode, NoiseKind, Opened
from bursar.core.queries import Mask, Product, Steps
from bursar.errors import BudgetError
from bursar.estimation.estimate import IndependentRows, error_bars, meets
from bursar.goal import Goal, GoalKind
from bursar.papers.boost import PRINTED, PUBLISHED, VANILLA
from bursar.papers.boost.learning import Always, ConstantRate, Never
from bursar.planner.choose import Preset, acceptable
from bursar.planner.choose import offers as offers_of
from bursar.planner.offer import Offer
from bursar.proposers.direct import Direct
from bursar.proposers.pmw import TIGHT, CheckedLaw, Pmw, PmwSettings
from bursar.views.learner import Adaptive, Learning
from bursar.views.measurements import ALL_ROWS
from harness.learning import Stage, cells, grid, request

TABLE = np.array([[300, 100, 100], [100, 200, 200]])
DOMAIN = grid(2, 3)
A0, B0 = cells(DOMAIN, a=[0]), cells(DOMAIN, b=[0])
EVERY = cells(DOMAIN, a=[0, 1])
GOAL = {"within": 300.0, "beta": 0.05}


def settings(**changes: object) -> PmwSettings:
    """Every question is tested, unless it is said otherwise."""
    learning = Learning(schedule=ConstantRate(value=0.1), heuristic=Always())
    return replace(TIGHT, **{"learning": learning, **changes})  # type: ignore[arg-type]


def stage(
    chosen: PmwSettings | None = None, *others: object, seed: int | None = None, table: np.ndarray = TABLE
) -> Stage:
    """Without noise unless there is a seed."""
    return Stage(table=table, preset=Preset("test", (*others, Pmw(chosen or settings()))), seed=seed)  # type: ignore[arg-type]


def known(made: Stage) -> Stage:
    """The number of rows is in the log."""
    made.ask(A0, **GOAL)
    return made


def events(made: Stage, kind: type[Event]) -> list[Event]:
    return [record.event for record in made.records if isinstance(record.event, kind)]


def offers(made: Stage, query: Product, *, within: float = 300.0, beta: float = 0.05) -> list[Offer]:
    alone = replace(made.preset, proposers=made.preset.proposers[-1:])
    return list(offers_of(alone, request(query, within=within, beta=beta), made.planner.views()))


def test_the_number_of_rows_is_bought_with_the_first_answer() -> None:
    made = stage()
    offer, estimate = made.ask(A0, **GOAL)
    assert estimate.values.tolist() == [500]
    assert [event.strategy.digest for event in events(made, Measured)] == [ALL_ROWS.digest, A0.digest]  # type: ignore[attr-defined]
    assert offer.price.events[0].noise.scale == 2.0**-6  # type: ignore[union-attr]
    assert offer.credit == 0  # here it costs nothing
    assert events(made, Opened) == []


def test_where_the_number_of_rows_is_not_free_it_bids_nothing() -> None:
    made = stage()
    made._price = lambda event: 100 if isinstance(event, Measured) else 0  # type: ignore[method-assign]
    (offer,) = offers(made, A0)
    size, answer = offer.price.events
    assert isinstance(size, Measured)
    assert isinstance(answer, Measured)
    assert size.noise.scale == 4 * answer.noise.scale
    assert (offer.price.at_most, offer.bid) == (200, 100)
    assert len(offers(made, ALL_ROWS)[0].price.events) == 1  # asked for itself


def test_a_test_that_passes_costs_its_opening_only_once() -> None:
    made = known(stage())
    spent = made.spent
    offer, estimate = made.ask(B0, **GOAL)
    opened, bought = offer.price.events
    assert isinstance(opened, Opened)
    assert isinstance(bought, Measured)
    assert offer.price.at_most == made.price(offer.price.events)
    assert made.spent - spent == made.price((opened,))
    assert estimate.values[0] == round(1000 / 3)  # uniform, and off by 67 at a goal of 300
    assert [len(events(made, kind)) for kind in (Opened, Failed)] == [1, 0]
    offer, _ = made.ask(cells(DOMAIN, b=[1]), **GOAL)
    assert [type(event) for event in offer.price.events] == [Failed, Measured]
    assert offer.price.events[0].instance == 4  # type: ignore[union-attr]
    assert offer.price.at_most == made.price(offer.price.events[1:])
    assert made.spent - spent == made.price((opened,))
    assert len(events(made, Opened)) == 1


def test_a_test_that_fails_is_bought_and_learnt_from() -> None:
    table = np.array([[900, 30, 20], [20, 20, 10]])
    made = known(stage(table=table))
    offer, estimate = made.ask(B0, **GOAL)
    assert estimate.values.tolist() == [920]
    assert isinstance(estimate.law, CheckedLaw)
    failed = events(made, Failed)
    assert [(one.query.digest, one.estimate, one.instance) for one in failed] == [(B0.digest, 333, 4)]  # type: ignore[attr-defined]
    assert offer.price.at_most == made.spent - made.price(made.records[2].event for _ in range(1))
    again, _ = made.ask(cells(DOMAIN, b=[1]), **GOAL)  # the instance is closed: a new one
    assert isinstance(again.price.events[0], Opened)


def test_not_ready_means_bought_without_a_test() -> None:
    made = known(stage(settings(learning=Learning(schedule=ConstantRate(value=0.1), heuristic=Never()))))
    for query in (B0, cells(DOMAIN, b=[1])):
        offer, _ = made.ask(query, **GOAL)
        assert [type(event) for event in offer.price.events] == [Measured]
        assert isinstance(offer.law, IndependentRows)
    assert made.tests == 0


def test_the_heuristic_decides_question_by_question() -> None:
    heuristic = Adaptive(first=2, step=1)
    learning = Learning(schedule=ConstantRate(value=0.5), heuristic=heuristic, tau=0.01)
    made = known(stage(settings(learning=learning, cache=False)))
    kinds = [type(made.ask(B0, **GOAL)[0].price.events[0]) for _ in range(4)]
    assert kinds[0] is Measured
    assert Opened in kinds  # after two updates


def test_the_exact_cache_in_front_holds_bought_answers_only() -> None:
    made = known(stage())
    free, estimate = made.ask(A0, **GOAL)
    assert (free.free, estimate.values.tolist(), free.reuses) == (True, [500], 1)
    assert made.ask(A0, within=400.0, beta=0.05)[0].free
    assert not made.ask(A0, within=200.0, beta=0.05)[0].free
    made.ask(B0, **GOAL)  # passed, so it is not in the cache
    assert not made.ask(B0, **GOAL)[0].free
    assert not known(stage(settings(cache=False))).ask(A0, **GOAL)[0].free


def test_groups_are_tested_one_by_one_and_bought_together() -> None:
    groups = Product((Mask(("b",), (3,), Steps.identity(3)),))
    made = known(stage())
    offer, estimate = made.ask(groups, **GOAL)
    assert (made.tests, estimate.values.tolist()) == (3, [333, 333, 333])
    uneven = known(stage(table=np.array([[10, 900, 30], [10, 20, 30]])))
    offer, estimate = uneven.ask(groups, **GOAL)
    assert (uneven.tests, estimate.values.tolist()) == (1, [20, 920, 60])  # the first is off already
    offer, _ = made.ask(groups, within=300.0, beta=0.05)
    assert [type(event) for event in offer.price.events] == [Failed] * 3 + [Measured]
    assert len(error_bars(offer.law, request(groups, **GOAL).goal)) == 3


def test_sums_have_a_scope_of_their_own() -> None:
    made = known(stage())
    made.ask(B0, **GOAL)
    total = Product((Mask(("b",), (3,), Steps.dense([[0, 5, 10]])),))
    offer, estimate = made.ask(total, within=3000.0, beta=0.05)
    opened = offer.price.events[0]
    assert isinstance(opened, Opened)
    assert opened.scope.largest() == 10
    assert estimate.values[0] == pytest.approx(5000, abs=1)
    smaller = Product((Mask(("b",), (3,), Steps.dense([[0, 5, 8]])),))
    assert isinstance(made.ask(smaller, within=3000.0, beta=0.05)[0].price.events[0], Failed)


def test_a_scope_is_over_the_columns_that_are_asked_together() -> None:
    made = known(stage())
    both = cells(DOMAIN, a=[0], b=[0])
    offer, _ = made.ask(both, **GOAL)
    assert offer.price.events[0].scope.attrs == ("a", "b")  # type: ignore[union-attr]
    assert isinstance(made.ask(B0, **GOAL)[0].price.events[0], Failed)  # covered by it
    other = known(stage())
    other.ask(B0, **GOAL)
    assert isinstance(other.ask(both, **GOAL)[0].price.events[0], Opened)  # not the other way round


@pytest.mark.parametrize("row", [[1, -1, 0], [0, -1, -1]])
def test_negative_values_are_never_tested(row: list[int]) -> None:
    made = known(stage())
    offer, _ = made.ask(Product((Mask(("b",), (3,), Steps.dense([row])),)), **GOAL)
    assert [type(event) for event in offer.price.events] == [Measured]


def test_questions_that_get_no_offer() -> None:
    made = stage()
    views = made.planner.views()
    proposer = Pmw(settings())
    asked = request(A0, **GOAL)
    for goal in (Goal(kind=GoalKind.RMSE, amount=10), Goal(kind=GoalKind.SPEND, amount=0.1)):
        assert not proposer.scope.covers(replace(asked, goal=goal), views)
    assert proposer.offers(request(A0, within=0.5, beta=0.05), views) == []
    gaussian = Pmw(settings(answers=NoiseKind.GAUSSIAN))
    assert not gaussian.scope.covers(asked, views)
    concentrated = replace(views, mode=Mode.CONCENTRATED)
    assert gaussian.scope.covers(asked, concentrated)
    assert gaussian.offers(asked, concentrated) != []


def test_where_everything_can_be_bought_there_is_no_offer() -> None:
    """The rule of the default preset: only about more joint cells than a strategy for all questions may have."""
    assert offers(stage(settings(least_cells=1)), A0) != []
    assert offers(stage(settings(least_cells=2)), A0) == []


def test_too_many_cells_are_bought_without_a_test() -> None:
    learning = Learning(schedule=ConstantRate(value=0.1), heuristic=Always(), most_bins=5)
    made = known(stage(settings(learning=learning)))
    assert isinstance(made.ask(cells(DOMAIN, a=[0], b=[0]), **GOAL)[0].price.events[0], Measured)
    assert isinstance(made.ask(B0, **GOAL)[0].price.events[0], Opened)


def test_a_bid_is_what_questions_cost_in_the_long_run() -> None:
    """(1 + misses) / (2 + answers) of an opening and an answer; and never more than what is held."""
    made = known(stage())
    (offer,) = offers(made, B0)
    opened, bought = offer.price.events
    share = 1 / 3  # one answer was bought, and the estimate was right
    assert offer.bid == pytest.approx(share * made.price((opened, bought)), rel=0.01)
    made.ask(B0, **GOAL)
    (live,) = offers(made, cells(DOMAIN, b=[1]))
    assert live.bid == pytest.approx(min(share * made.price((opened, bought)), live.price.at_most), rel=0.01)
    far = known(stage(table=np.array([[999, 1, 0], [0, 0, 0]])))
    (dear,) = offers(far, B0)
    assert dear.bid == pytest.approx(2 / 3 * far.price(dear.price.events), rel=0.01)
    assert all(one.bid <= one.price.at_most for one in (offer, live, dear))


@pytest.mark.parametrize(("table", "good"), [(np.full((2, 3), 200), True), (np.diag([900, 100, 0])[:2], False)])
def test_it_is_preferred_where_its_bid_is_lower(table: np.ndarray, good: bool) -> None:
    """Beside `direct`: tests win once the answers that were bought say that estimates are good, and else never."""
    learning = Learning(schedule=ConstantRate(value=0.001), heuristic=Always())
    made = stage(settings(learning=learning, cache=False), Direct(), seed=5, table=table)
    made.ask(ALL_ROWS, **GOAL)
    names = [
        made.ask(cells(DOMAIN, a=[turn % 2], b=[turn % 3]), within=200.0, beta=0.05)[0].proposer for turn in range(60)
    ]
    assert "pmw" not in names[:3]
    assert ("pmw" in names) is good


@pytest.mark.parametrize(
    "preset", [PUBLISHED, PRINTED, VANILLA, TIGHT], ids=["published", "printed", "vanilla", "tight"]
)
def test_every_setting_is_accepted_at_its_own_goals(preset: PmwSettings) -> None:
    made = stage(replace(preset, learning=replace(preset.learning, heuristic=Always())))
    for query in (A0, B0, A0, EVERY):
        (offer,) = offers(made, query)
        goal = request(query, **GOAL).goal
        assert acceptable(offer, goal)
        assert error_bars(offer.law, goal)[0] <= goal.amount
        assert not meets(offer.law, replace(goal, amount=20.0))
        made.ask(query, **GOAL)
    assert made.tests > 0


def test_what_is_claimed_and_what_holds_stand_side_by_side() -> None:
    made = known(stage(replace(PUBLISHED, learning=settings().learning)))
    (offer,) = offers(made, B0)
    assert offer.law.tail(300.0, 0.05) == pytest.approx(0.05)
    assert "fails with up to 0.09" in offer.note
    assert "fails" not in offers(known(stage()), B0)[0].note


def test_a_restart_finds_the_same_offers() -> None:
    learning = Learning(schedule=ConstantRate(value=0.2), heuristic=Adaptive(first=3, step=1))
    made = stage(settings(learning=learning, cache=False), seed=7)
    rng = np.random.default_rng(1)
    for _ in range(150):
        made.ask(cells(DOMAIN, a=[int(rng.integers(2))], b=[int(rng.integers(3))]), within=200.0, beta=0.05)
    assert made.tests > 0
    before = [offers(made, query)[0] for query in (A0, B0, cells(DOMAIN, a=[1], b=[2]))]
    made.planner = made.reopened()
    after = [offers(made, query)[0] for query in (A0, B0, cells(DOMAIN, a=[1], b=[2]))]
    for one, other in zip(before, after, strict=True):
        assert (one.note, one.bid, one.price.at_most) == (other.note, other.bid, other.price.at_most)
        assert [type(event) for event in one.price.events] == [type(event) for event in other.price.events]


def test_nothing_is_offered_beyond_any_budget() -> None:
    made = stage()

    def never(events: object) -> int:
        raise BudgetError(asked=2000.0, left=1.0, unit="epsilon")

    views = replace(made.planner.views(), price=never)
    assert Pmw(settings()).offers(request(A0, **GOAL), views) == []

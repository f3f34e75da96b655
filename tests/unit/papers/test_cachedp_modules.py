"""CacheDP's modules over the log: what they buy, reuse and refine, for which price, and how goals are checked."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from bursar.core.accounting import Measured, Noise, NoiseKind, Refined, from_units
from bursar.core.budget import Budget
from bursar.core.domain import Domain, IntegerRange
from bursar.core.kernel import Kernel
from bursar.errors import GoalError
from bursar.estimation.estimate import WeightedRows, meets
from bursar.goal import Goal, GoalKind
from bursar.papers.cachedp import modules
from bursar.papers.cachedp.accuracy import Analytic, MonteCarlo, Simulated, draw
from bursar.papers.cachedp.full_rank import Nested
from bursar.papers.cachedp.instant import InstantEstimator
from bursar.papers.cachedp.modules import Expander
from bursar.planner.choose import Preset, offers
from bursar.planner.goals import Wanted
from bursar.planner.offer import Offer
from bursar.planner.planner import Planner
from bursar.session import Bursar
from harness.small import Silence, config, counts, engine

LINE = Domain((IntegerRange(name="age", lower=0, upper=7, null=0),))
PLENTY = Budget.of(epsilon=100.0)
EXACT = {"tails": "analytic"}
SWITCHES = [{}, {"gls": True, "rowwise": True}, {"branching": 3, "relax": False}, {"tails": "monte-carlo"}]


def words(seed: int):
    rng = np.random.default_rng(seed)
    return lambda count: rng.integers(0, 2**64, count, dtype=np.uint64)


class Tape:
    """Words that are counted."""

    def __init__(self, own) -> None:  # type: ignore[no-untyped-def]
        self.own, self.length = own, 0

    def __call__(self, count: int):  # type: ignore[no-untyped-def]
        self.length += count
        return self.own(count)


def open_engine(domain: Domain | None = None, *, sequential: bool = True, **switches: object) -> Bursar:
    """An engine with the modules, charged as in the paper."""
    settings = config(budget=PLENTY) if domain is None else config(budget=PLENTY, domain=domain)
    table = None if domain is None else np.zeros(domain.sizes(domain.names), np.int64)
    randomness = switches.pop("randomness", None)
    preset = Preset("cachedp", modules(**switches))
    db = engine(table=table, settings=settings, preset=preset, randomness=randomness)
    if sequential:
        facts = {"domain": settings.domain, "unit": settings.unit, "budget": PLENTY, "max_rows": settings.max_rows}
        door = {"ledger": db.ledger, "open_source": db.engine.open_source, "randomness": db.engine.randomness}
        db.kernel = Kernel(**facts, **door, sequential=True)
        db.engine.planner = Planner(settings.domain, PLENTY.mode, preset, db.kernel, db.ledger.records)
    return db


def offered(db: Bursar, sql: str, **wanted: float) -> dict[str, Offer]:
    request = db.engine.prepare(sql, Wanted(**wanted), None)
    return {offer.proposer: offer for offer in offers(db.engine.planner.preset, request, db.engine.planner.views())}


def between(low: int, high: int) -> str:
    return f"SELECT COUNT(*) FROM people WHERE age BETWEEN {low} AND {high - 1}"


BY_AGE = "SELECT age, COUNT(*) AS n FROM people GROUP BY age"

QUESTIONS = [
    (between(0, 7), 60),
    (between(0, 7), 60),
    (between(0, 7), 30),
    (BY_AGE, 40),
    ("SELECT COUNT(*) FROM people", 40),
    ("SELECT sex, region, COUNT(*) FROM people WHERE age BETWEEN 2 AND 5 GROUP BY sex, region", 40),
    ("SELECT sex, COUNT(*) FROM people WHERE age BETWEEN 2 AND 5 AND region = 'north' GROUP BY sex", 30),
    ("SELECT sex, COUNT(*) FROM people WHERE age IN (1, 2, 5, 9) GROUP BY sex", 35),
    (between(4, 10), 30),
    ("SELECT COUNT(*) FROM people WHERE age > 20", 30),
]


@pytest.mark.heavy
@pytest.mark.sampled(2)
@pytest.mark.parametrize("switches", SWITCHES)
def test_without_noise_every_answer_is_the_truth(switches: dict[str, object]) -> None:
    """All modules take part, over one column and over several."""
    db = open_engine(**{**EXACT, "words": words(1), "randomness": Silence(), **switches})
    used = set()
    table = counts()
    for sql, within in QUESTIONS:
        answer = db.query(sql, within=within)
        used.add(answer.source)
        if sql == BY_AGE:
            np.testing.assert_allclose([v for (v,) in answer.values], table.sum(axis=(1, 2)), atol=1e-6)
        elif "IN (1" in sql:
            np.testing.assert_allclose([v for (v,) in answer.values], table[[1, 2, 5, 9]].sum(axis=(0, 2)), atol=1e-6)
        elif "region = 'north'" in sql:
            np.testing.assert_allclose([v for (v,) in answer.values], table[2:6, :, 0].sum(axis=0), atol=1e-6)
        elif "GROUP BY sex, region" in sql:
            np.testing.assert_allclose([v for (v,) in answer.values], table[2:6].sum(axis=0).ravel(), atol=1e-6)
        elif sql == between(0, 7):
            assert answer.value == pytest.approx(table[:7].sum(), abs=1e-6)
        elif sql == between(4, 10):
            assert answer.value == pytest.approx(table[4:].sum(), abs=1e-6)
    assert used >= {"mmm", "exact"} | (set() if switches.get("relax") is False else {"rp"})


def test_what_mmm_costs_is_the_norm_over_the_scale() -> None:
    db = open_engine(LINE, **EXACT)
    offer = offered(db, between(3, 8), within=50)["mmm"]
    (event,) = offer.price.events
    assert isinstance(event, Measured)
    assert from_units(offer.price.at_most) == pytest.approx(1 / event.noise.scale, rel=1e-9)
    batch = db.batch([between(2, 6), between(3, 7)], within=50)
    bought = db.ledger.records()[-1].event
    assert batch.charge == pytest.approx(2 / bought.noise.scale, rel=1e-9)  # |A_2|_1 = 2


def test_a_cached_answer_is_free_and_a_finer_one_relaxes_the_whole_strategy() -> None:
    """Price |A|_1 (1/b - 1/b_o); proactive rows are refined along."""
    db = open_engine(LINE, **EXACT)
    first = db.query(between(0, 7), within=60)
    assert first.source == "mmm"
    assert first.bought == 4  # [0,4) [4,6) [6,7) and, along with them, [7,8)
    assert db.query(between(0, 7), within=60).free
    assert db.query(between(0, 7), within=80).free
    relaxed = db.query(between(0, 7), within=30)
    event = db.ledger.records()[-1].event
    assert relaxed.source == "rp"
    assert isinstance(event, Refined)
    assert event.rows.tolist() == [0, 1, 2, 3]
    assert relaxed.charge == pytest.approx(1 / event.after.scale - 1 / event.before.scale, rel=1e-6)
    assert db.query(between(7, 8), within=30).free


def test_row_by_row_only_what_is_needed_is_refined() -> None:
    db = open_engine(LINE, **EXACT, rowwise=True)
    db.query(between(0, 7), within=60)
    answer = db.query(between(4, 6), within=20)
    event = db.ledger.records()[-1].event
    assert answer.source == "rp"
    assert len(event.rows) == 1
    db.query(between(4, 8), within=50)
    assert db.query(between(0, 7), within=30).source == "rp"  # rows of one block with different noise


def test_example_6_1() -> None:
    """The strategy of [3, 8) lies in what was bought for W_2 and along with it."""
    db = open_engine(LINE, **EXACT)
    db.batch([between(2, 6), between(3, 7)], within=60)
    block = db.ledger.records()[-1]
    answer = db.query(between(3, 8), within=30)
    event = db.ledger.records()[-1].event
    assert answer.source == "rp"
    assert event.block == block.position
    assert len(event.rows) == block.event.strategy.rows


def test_the_expander_reuses_rows_beside_the_strategy() -> None:
    db = open_engine(LINE, **EXACT)
    db.query(BY_AGE, within=40)
    found = offered(db, between(0, 7), within=60)
    assert found["mmm"].reuses == 1  # [6, 7)
    assert found["se"].reuses == 1 + 6  # and what lies inside [0, 4) and [4, 6)
    assert found["se"].price.at_most < found["mmm"].price.at_most


def test_the_expander_takes_the_finest_rows_up_to_its_limit() -> None:
    shared = InstantEstimator(branching=2, quads=(), accuracy=Analytic(), gls=False)
    db = open_engine(LINE, **EXACT)
    db.query(BY_AGE, within=40)
    db.query("SELECT age, COUNT(*) FROM people WHERE age < 3 GROUP BY age", within=20)
    request = db.engine.prepare(between(0, 7), Wanted(within=60), None)
    (offer,) = Expander(shared, proactive=True, most=4).offers(request, db.engine.planner.views())
    assert offer.reuses == 1 + 4
    views = db.engine.planner.views()
    basic = shared.basic(request, views)
    assert basic is not None
    taken = basic.instant.expanded(math.inf, 4).boxes[3:]
    assert set(taken) > {((0, 1),), ((1, 2),), ((2, 3),)}
    assert basic.instant.expanded(0.5, 4).extra == 0


def test_the_expander_can_be_free_with_weighted_least_squares() -> None:
    """Figure 5: [2, 4) need not be bought where [0, 4), [0, 1) and [1, 2) are known."""
    db = open_engine(LINE, **EXACT, gls=True, proactive=False, relax=False)
    db.query(between(0, 4), within=40)
    db.query("SELECT age, COUNT(*) FROM people WHERE age < 2 GROUP BY age", within=10)
    answer = db.query(between(2, 4), within=60)
    assert (answer.source, answer.charge) == ("se", 0)


def test_switches_leave_modules_out() -> None:
    assert [module.name for module in modules()] == ["mmm", "se", "rp"]
    assert [module.name for module in modules(expander=False, relax=False)] == ["mmm"]
    db = open_engine(LINE, **EXACT, proactive=False)
    assert db.query(between(0, 7), within=60).bought == 3


def test_proactive_rows_never_cost_more_under_the_profile() -> None:
    """Where every cell has its own loss, rows elsewhere may not be free; then they are left out."""
    db = open_engine(LINE, sequential=False, **EXACT, proactive=False)
    db.query(between(6, 8), within=20)
    request = db.engine.prepare(between(0, 4), Wanted(within=60), None)
    (alone,) = offers(db.engine.planner.preset, request, db.engine.planner.views())
    (along,) = offers(Preset("cachedp", modules(**EXACT)), request, db.engine.planner.views())
    assert along.price.at_most == alone.price.at_most == 0  # [0, 4) is about other people than [6, 8)
    assert along.buys == alone.buys == 1
    (charged_in_sequence,) = offered(open_engine(LINE, **EXACT), between(0, 4), within=60).values()
    assert charged_in_sequence.buys == 2


def test_what_is_not_offered() -> None:
    db = open_engine(**EXACT)
    assert offered(db, "SELECT COUNT(*) FROM people WHERE age = 3 OR sex = 'F'", within=50) == {}
    assert offered(db, "SELECT COUNT(*) FROM people", epsilon=0.1) == {}
    settings = config(budget=Budget.of(rho=1.0))
    concentrated = engine(settings=settings, preset=Preset("cachedp", modules(**EXACT)))
    assert offered(concentrated, "SELECT COUNT(*) FROM people", within=50) == {}
    with pytest.raises(GoalError):
        concentrated.query("SELECT COUNT(*) FROM people", within=50)


def test_a_pair_of_columns_may_have_a_quad_tree() -> None:
    square = Domain(
        (IntegerRange(name="north", lower=0, upper=3, null=0), IntegerRange(name="east", lower=0, upper=3, null=0))
    )
    sql = "SELECT COUNT(*) FROM people WHERE north < 2 AND east < 2"
    joint, quads = (open_engine(square, **EXACT, proactive=False, quads=q) for q in ((), [("east", "north")]))
    for db in (joint, quads):
        db.query("SELECT north, east, COUNT(*) FROM people GROUP BY north, east", within=50)
        assert db.query(sql, within=50).bought == 1
    half = "SELECT COUNT(*) FROM people WHERE north < 2"
    assert joint.query(half, within=40).bought == 1
    assert quads.query(half + " AND east < 4 AND east >= 0 AND north >= 0", within=40).bought >= 1


# -- how a goal is checked --------------------------------------------------------------------------------------------


def test_draws_have_the_law_of_what_is_bought() -> None:
    """Chi-square at 1e-6 against discrete Laplace noise; continuous noise, rounded, is told apart."""
    scale, size = 1.5, 200_000
    found = draw(words(3), np.array([scale]), size)[0]
    rounded = np.rint(np.random.default_rng(4).laplace(0, scale, size))
    a = math.exp(-1 / scale)
    ks = np.arange(-8, 9)
    mass = (1 - a) / (1 + a) * a ** np.abs(ks)
    mass[[0, -1]] = a**8 / (1 + a)
    p_values = []
    for sample in (found, rounded):
        seen = np.array([(np.clip(sample, -8, 8) == k).sum() for k in ks])
        p_values.append(stats.chisquare(seen, mass * size).pvalue)
    assert p_values[0] > 1e-6
    assert p_values[1] < 1e-6


def test_the_printed_confidence_term() -> None:
    """beta_e + z_{1-p/2} sqrt(beta_e (1 - beta_e)/N) + p/2, p = beta/100: .0464 of failures do not pass at .05."""
    goal = Goal(kind=GoalKind.ERROR, amount=30.0)
    law = MonteCarlo(words=words(5)).check(np.eye(1), np.array([8.0]), goal)
    assert isinstance(law, Simulated)
    share = 2 * math.exp(-30 / 8) / (1 + math.exp(-1 / 8))
    spread = stats.norm.ppf(1 - 0.05 / 200) * math.sqrt(share * (1 - share) / 10_000)
    assert law.chance == pytest.approx(share + spread + 0.05 / 200, abs=5 * math.sqrt(share / 10_000))
    scale = 30 / math.log(1 / 0.0464)
    assert MonteCarlo(words=words(5)).check(np.eye(1), np.array([scale]), goal) is None


def test_a_simulation_ends_when_it_has_failed() -> None:
    """The verdict is that of all draws: as soon as the failures alone are too many, more cannot make them fewer."""
    goal, rows = Goal(kind=GoalKind.ERROR, amount=30.0), 100
    for scale, passed in ((2.0, True), (3.0, True), (5.0, False), (30.0, False)):
        tape = Tape(words(6))
        law = MonteCarlo(words=tape).check(np.eye(rows), np.full(rows, scale), goal)
        chance = 1 - (1 - 2 * math.exp(-30 / scale) / (1 + math.exp(-1 / scale))) ** rows
        assert (law is not None) is passed is (chance < 0.046)
        assert (tape.length == 10_000 * rows) is passed
        assert passed or tape.length < 10_000 * rows / 2


def test_a_simulated_law_quotes_its_simulation() -> None:
    """The union bound would refuse what the simulation has passed: errors that go together are counted once."""
    weights = np.ones((40, 1))
    goal = Goal(kind=GoalKind.ERROR, amount=50.0)
    law = MonteCarlo(words=words(6)).check(weights, np.array([15.0]), goal)
    assert law is not None
    assert meets(law, goal)
    assert Analytic().check(weights, np.array([15.0]), goal) is None
    assert np.all(law.half_widths(goal.beta) == 50)
    assert law.tail(49.0, 0.05) > 0.05
    assert law.mean_square() == pytest.approx(Noise(kind=NoiseKind.LAPLACE, scale=15.0).variance())


def test_fresh_draws_charge_again_about_half_the_time() -> None:
    """The published check draws anew, so what was just bought passes or fails by luck; the analytic one does not."""
    db = open_engine(LINE, words=words(7))
    db.query(between(0, 7), within=60)
    paid = [not offered(db, between(0, 7), within=60)["mmm"].free for _ in range(24)]
    assert 0.15 < np.mean(paid) < 0.85
    exact = open_engine(LINE, **EXACT)
    exact.query(between(0, 7), within=60)
    assert all(offered(exact, between(0, 7), within=60)["mmm"].free for _ in range(5))


def test_expected_total_squared_error() -> None:
    """alpha^2 over l queries is our rmse with alpha^2 = l rmse^2; no simulation, so repetition is free."""
    total, queries = 250_000.0, 8
    db = open_engine(LINE, words=lambda count: pytest.fail("nothing is simulated"))
    rmse = math.sqrt(total / queries)
    offer = offered(db, BY_AGE, rmse=rmse)["mmm"]
    assert isinstance(offer.law, WeightedRows)
    assert queries * offer.law.mean_square() == pytest.approx(total, rel=1e-6)
    assert queries * offer.law.mean_square() <= total
    db.query(BY_AGE, rmse=rmse)
    assert db.query(BY_AGE, rmse=rmse).free


def test_what_a_simulation_passed_keeps_the_goal() -> None:
    """The exact chance of the error that was promised, which the simulation can only estimate, for every module."""
    db = open_engine(LINE, words=words(8))
    seen = set()
    for sql, within in [
        (between(0, 4), 50),
        (BY_AGE, 80),
        (between(0, 7), 30),
        (between(0, 7), 25),
        (between(1, 7), 30),
    ]:
        for offer in offered(db, sql, within=within).values():
            law = offer.law
            assert isinstance(law, Simulated)
            assert law.rows.tail(within, 0.0) <= 0.05
            seen.add(offer.proposer)
        db.query(sql, within=within)
    assert seen == {"mmm", "se", "rp"}


@pytest.mark.heavy
def test_relaxed_rows_have_the_finer_law() -> None:
    """After RP each row has discrete Laplace noise of the new scale, and not of the old one."""
    wide = Domain((IntegerRange(name="age", lower=0, upper=799, null=0),))
    db = open_engine(wide, **EXACT, proactive=False)
    db.query(BY_AGE, rmse=20)
    answer = db.query(BY_AGE, rmse=5)
    event = db.ledger.records()[-1].event
    assert answer.source == "rp"
    sample = np.abs([v for (v,) in answer.values])  # the truth is zero everywhere
    edges = [0, 1, 2, 3, 5, 8, 12, 10**9]
    p_values = []
    for noise in (event.after, event.before):
        a = math.exp(-1 / noise.scale)
        beyond = np.array([1.0 if k == 0 else 2 * a**k / (1 + a) for k in edges])
        expected = -np.diff(beyond) * len(sample)
        p_values.append(stats.chisquare(np.histogram(sample, edges)[0], expected).pvalue)
    assert p_values[0] > 1e-6
    assert p_values[1] < 1e-6


def test_joint_trees_are_charged_by_their_norm() -> None:
    db = open_engine(**EXACT)
    sql = "SELECT sex, region, COUNT(*) FROM people WHERE age BETWEEN 2 AND 5 GROUP BY sex, region"
    offer = offered(db, sql, within=40)["mmm"]
    (event,) = offer.price.events
    rows = db.engine.planner.views().nodes
    assert from_units(offer.price.at_most) == pytest.approx(1 / event.noise.scale, rel=1e-9)
    db.query(sql, within=40)
    boxes = tuple(db.engine.planner.views().nodes.over(("age", "sex", "region")))
    assert rows.over(("age",)) == {}
    assert len(boxes) == event.strategy.rows
    assert Nested(boxes).norm == 1


def test_a_preset_can_serve_several_engines() -> None:
    """What is remembered belongs to one request on one state of one log."""
    preset = Preset("cachedp", modules(**EXACT))
    one, other = (engine(settings=config(budget=PLENTY), preset=preset) for _ in range(2))
    request = one.engine.prepare(between(0, 7), Wanted(within=60), None)
    bought = one.engine.ask(request)
    assert not bought.free
    assert other.engine.planner.choose(request).price.at_most > 0
    assert one.engine.ask(replace(request)).free

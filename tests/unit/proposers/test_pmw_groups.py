"""Histograms over declared groups of columns: what is learnt, and what questions across groups get instead."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bursar import presets
from bursar.core.accounting import Measured, Noise, NoiseKind
from bursar.core.domain import Domain, Neighbours, Unit
from bursar.core.queries import Mask, Product, Steps
from bursar.papers.boost.learning import Always, ConstantRate
from bursar.planner.choose import Preset
from bursar.proposers.direct import Direct
from bursar.proposers.pmw import TIGHT, Pmw
from bursar.proposers.pmw_windows import PmwWindows
from bursar.proposers.reuse import Exact
from bursar.session import Bursar
from bursar.views.learner import Adaptive, Learner, Learning
from harness.small import DOMAIN, Silence, config, engine

GROUPS = (("age", "sex"),)
LEARNING = Learning(schedule=ConstantRate(value=0.3), heuristic=Adaptive(first=0))
WITH_OTHERS = replace(TIGHT, learning=LEARNING, least_cells=1)
PRESET = Preset("test", (Exact(), Pmw(WITH_OTHERS), Direct()))
INSIDE = "SELECT COUNT(*) FROM people WHERE sex = 'F' AND age < 5"
ACROSS = "SELECT COUNT(*) FROM people WHERE sex = 'F' AND region = 'north'"
EVEN = np.full(DOMAIN.sizes(DOMAIN.names), 100)


def opened(preset: Preset = PRESET, **settings: object) -> Bursar:
    unit = Unit(neighbours=Neighbours.REPLACE_ONE)
    declared = replace(config(unit=unit, public_size=int(EVEN.sum())), groups=GROUPS, **settings)
    return engine(table=EVEN, settings=declared, randomness=Silence(), preset=preset)


def learner_of(made: Bursar) -> Learner:
    proposer = next(one for one in made.engine.planner.preset.proposers if isinstance(one, Pmw))
    learning, views = proposer.settings.learning, made.engine.planner.views()
    assert learning.groups == made.config.groups
    return views.histograms.of(learning, lambda: Learner(views.domain, learning))


def offering(made: Bursar, text: str) -> set[str]:
    return {line.proposer for line in made.explain(text, within=300).offers}


def test_a_question_across_groups_is_answered_another_way_and_joins_nothing() -> None:
    made = opened()
    assert offering(made, INSIDE) == {"pmw", "direct"}
    assert offering(made, ACROSS) == {"direct"}
    for text in (INSIDE, ACROSS):
        made.query(text, within=300)
    assert set(learner_of(made).histogram.groups) == {("age", "sex"), ("region",)}


def test_without_groups_the_same_questions_are_learnt_together() -> None:
    made = opened()
    free = engine(table=EVEN, settings=replace(made.config, groups=()), randomness=Silence(), preset=PRESET)
    assert offering(free, ACROSS) == {"pmw", "direct"}
    for text in (INSIDE, ACROSS):
        free.query(text, within=300)
    assert learner_of(free).histogram.groups == [("age", "sex", "region")]


def test_where_nobody_else_buys_it_is_bought_untested() -> None:
    made = opened(Preset("test", (Pmw(replace(WITH_OTHERS, least_cells=0)),)))
    made.query(INSIDE, within=300)
    answer = made.query(ACROSS, within=300)
    assert (answer.source, answer.value) == ("pmw", 1000)
    assert isinstance(made.ledger.records()[-1].event, Measured)
    assert made.query(ACROSS, within=200).source == "pmw"
    assert isinstance(made.ledger.records()[-1].event, Measured)


@pytest.mark.parametrize(
    ("columns", "together"),
    [((), True), (("region",), True), (("sex", "age"), True), (("sex", "region"), False), (("age", "region"), False)],
)
def test_which_columns_are_learnt_together(columns: tuple[str, ...], together: bool) -> None:
    assert replace(LEARNING, groups=GROUPS).together(columns) is together
    assert LEARNING.together(columns)


def test_a_histogram_is_never_ready_for_columns_of_two_groups() -> None:
    """Not even where every question is tested, nor after the log says that such a test was above."""
    both = Product(tuple(Mask((name,), DOMAIN.sizes((name,)), _first(name)) for name in ("sex", "region")))
    learning = replace(LEARNING, heuristic=Always())
    apart, joined = (Learner(DOMAIN, one, size=600.0) for one in (replace(learning, groups=GROUPS), learning))
    for learner in (apart, joined):
        learner.failed(both)
        learner.learn([(both, 100)], Noise(kind=NoiseKind.LAPLACE, scale=1.0))
    assert (apart.ready(both), joined.ready(both)) == (False, True)
    assert ("sex", "region") not in apart.histogram.groups
    assert ("sex", "region") in joined.histogram.groups


def _first(name: str) -> Steps:
    return Steps.dense([[1] + [0] * (DOMAIN[name].size - 1)])


def test_windows_of_partitions_have_the_same_groups() -> None:
    """The partition column is in no group, and takes no part."""
    domain = Domain(DOMAIN.attributes, partition="age")
    proposers = (Exact(), PmwWindows(replace(WITH_OTHERS, learning=replace(LEARNING)), whole=True), Direct())
    grouped = presets.under(None, Preset("test", proposers), domain, (("sex", "region"),))
    kept = next(one for one in grouped.proposers if isinstance(one, PmwWindows))
    assert kept.settings.learning.groups == (("sex", "region"),)
    unit = Unit(neighbours=Neighbours.REPLACE_ONE)
    facts = replace(config(unit=unit, public_size=int(EVEN.sum())), domain=domain)
    one, two = (("sex", "region"),), (("sex",), ("region",))
    for groups, text, found in ((one, ACROSS, True), (two, ACROSS, False), (two, INSIDE, True)):
        made = engine(table=EVEN, settings=replace(facts, groups=groups), preset=Preset("test", proposers))
        assert ("pmw-windows" in offering(made, f"{text} AND age < 4")) is found

"""Windows that are tested, through the whole engine and a ledger on disk: charges, streams, what a restart finds."""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bursar import presets
from bursar.core.accounting import Closed, Failed, Measured, Opened, from_units
from bursar.core.budget import Budget
from bursar.core.domain import Categories, Domain, IntegerRange, Neighbours, Unit
from bursar.core.extensions.curator import declare_version, seal
from bursar.core.extensions.partitions import PartitionAxis
from bursar.core.ledger import Ledger, MemoryLedger, SqliteLedger
from bursar.core.noise.system import SystemRandomness
from bursar.papers.boost.learning import Always, ConstantRate
from bursar.planner import grant as granting
from bursar.planner.choose import Preset
from bursar.planner.goals import Wanted
from bursar.proposers.pmw import TIGHT
from bursar.proposers.pmw_windows import PmwWindows
from bursar.session import Bursar
from bursar.views.learner import Learning
from harness.faults import later
from harness.learning import cells
from harness.small import Silence, TableSource, charter, config, engine

DOMAIN = Domain(
    (
        IntegerRange(name="week", lower=0, upper=7),
        Categories(name="sex", values=("F", "M")),
        IntegerRange(name="age", lower=0, upper=4),
    ),
    partition="week",
)
SHAPE = [attribute.size for attribute in DOMAIN.attributes]
TABLE = np.full(SHAPE, 100)
SETTINGS = config(
    domain=DOMAIN, unit=Unit(neighbours=Neighbours.REPLACE_ONE), budget=Budget.of(epsilon=20.0), max_rows=10**6
)
LEARNING = Learning(schedule=ConstantRate(value=0.1), heuristic=Always())
TESTING = Preset("test", (PmwWindows(replace(TIGHT, learning=LEARNING)),))
"""A node is tested as soon as it has learnt anything."""


def ask(sex: str, low: int, high: int, age: int = 3) -> str:
    return f"SELECT COUNT(*) FROM people WHERE sex = '{sex}' AND week BETWEEN {low} AND {high} AND age < {age}"


QUESTIONS = [ask(sex, low, high) for low, high in ((0, 3), (4, 5), (0, 5), (1, 6)) for sex in "FM"]
GOAL: Any = {"within": 250, "confidence": 0.95}


def axis() -> PartitionAxis:
    found = PartitionAxis.of(DOMAIN, SETTINGS.unit)
    assert found is not None
    return found


def on_disk(place: Path) -> None:
    ledger = SqliteLedger.create(place, charter(SETTINGS))
    declare_version(ledger, lambda key: TableSource(TABLE, DOMAIN), SystemRandomness(), axis=axis(), through=7)
    ledger.close()


def opened(place: Path) -> Bursar:
    ledger = SqliteLedger.open(place)
    return engine(table=TABLE, settings=SETTINGS, ledger=ledger, randomness=Silence(), preset=TESTING)


def kinds(ledger: Ledger) -> list[type]:
    return [type(record.event) for record in ledger.records()]


def state(made: Bursar) -> dict[str, Any]:
    """All that a restart must find again."""
    (proposer,) = made.engine.planner.preset.proposers
    assert isinstance(proposer, PmwWindows)
    tree = proposer.tree(made.engine.planner.views())
    return {
        "spent": made.kernel.spent_by_partition(),
        "nodes": {
            str(node): [learner.count(cells(DOMAIN, sex=[sex], age=[0, 1, 2])) for sex in range(2)]
            for node, learner in sorted(tree.nodes.items())
        },
        "live": {str(window): sorted(own) for window, own in sorted(tree.live.items()) if own},
    }


def elsewhere(work: Callable[[], Any]) -> Any:
    """The result of some work in a process of its own."""
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=lambda: queue.put(json.dumps(work())))
    child.start()
    result = json.loads(queue.get())
    child.join()
    return result


@pytest.mark.heavy
def test_a_second_process_finds_the_same_and_goes_on(tmp_path: Path) -> None:
    place = tmp_path / "ledger.sqlite"
    on_disk(place)
    first = opened(place)
    replies = [first.query(text, key=f"k{i}", **GOAL).to_bytes() for i, text in enumerate(QUESTIONS)]
    assert kinds(first.ledger).count(Opened) >= 2
    before, records = state(first), len(first.ledger.records())
    first.ledger.close()

    def work() -> dict[str, Any]:
        second = opened(place)
        again = [second.query(text, key=f"k{i}", **GOAL).to_bytes() for i, text in enumerate(QUESTIONS)]
        found = state(second)
        new = second.query(ask("F", 1, 6, age=2), **GOAL)  # its sparse vector was given back, and is open
        return {
            "same": again == replies,
            "state": found,
            "free": new.charge,
            "records": len(second.ledger.records()),
        }

    found = elsewhere(work)
    assert found == {"same": True, "state": before, "free": 0.0, "records": records}


def test_a_sparse_vector_whose_process_died_is_closed_and_opened_anew(tmp_path: Path) -> None:
    place = tmp_path / "ledger.sqlite"
    on_disk(place)
    made = opened(place)
    for text in QUESTIONS[:6]:
        made.query(text, **GOAL)
    openings = kinds(made.ledger).count(Opened)
    made.ledger.close()

    def die() -> None:
        dying = opened(place)
        request = dying.engine.prepare(ask("F", 0, 5, age=2), Wanted(**GOAL), None)
        offer = dying.engine.planner.choose(request)
        assert isinstance(offer.price.events[0], Failed)
        with granting.Grant(dying.kernel, "ana", "", offer.price.events, offer.price.at_most) as held:
            offer.run(held)
            os._exit(0)

    child = multiprocessing.get_context("fork").Process(target=die)
    child.start()
    child.join()
    assert child.exitcode == 0
    with later(granting.TEST_SECONDS + 1):
        after = opened(place)
        answer = after.query(ask("F", 0, 5, age=2), **GOAL)
    assert answer.value == 1200
    assert kinds(after.ledger).count(Closed) == 1
    assert kinds(after.ledger).count(Opened) == openings + 1


def test_partitions_are_charged_for_the_windows_about_them_only() -> None:
    made = engine(table=TABLE, settings=SETTINGS, randomness=Silence(), preset=presets.boost)
    made.query(ask("F", 2, 4), **GOAL)
    (event,) = (r.event for r in made.ledger.records() if isinstance(r.event, Measured))
    spent = [from_units(units) for units in made.kernel.spent_by_partition()]
    assert spent[2:5] == pytest.approx([1 / event.noise.scale] * 3)
    assert set(spent[:2] + spent[5:]) == {0.0}


def test_a_stream_is_asked_as_it_is_sealed() -> None:
    source = TableSource(TABLE, DOMAIN)
    ledger = MemoryLedger(charter(SETTINGS))
    declare_version(ledger, lambda key: source, SystemRandomness(), axis=axis(), through=0)
    made = engine(table=TABLE, settings=SETTINGS, ledger=ledger, randomness=Silence(), preset=TESTING)
    sources = []
    for week in range(8):
        seal(ledger, lambda key: source, axis=axis(), through=week)
        answer = made.query(ask("F", 0, week), **GOAL)
        assert abs(answer.value - 300 * (week + 1)) < 250
        made.query(ask("M", week, week), **GOAL)
        sources.append(answer.source)
    assert set(sources) == {"pmw-windows"}
    assert Opened in kinds(ledger)


def test_where_sizes_are_not_public_nothing_is_learnt_and_the_reason_is_true() -> None:
    settings = replace(SETTINGS, unit=Unit(neighbours=Neighbours.ADD_REMOVE))
    made = engine(table=TABLE, settings=settings, randomness=Silence(), preset=presets.boost)
    one, two = ask("F", 2, 4), "SELECT week, COUNT(*) FROM people WHERE week < 2 GROUP BY week"
    (offer,) = made.explain(one, **GOAL).offers
    assert "numbers of rows of partitions are not public" in offer.note
    assert "more than one window" in made.explain(two, **GOAL).offers[0].note
    usual = engine(table=TABLE, settings=settings, randomness=Silence())
    assert "pmw-windows" not in [line.proposer for line in usual.explain(one, **GOAL).offers]

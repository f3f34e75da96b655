"""Many analysts at once, crashes and changing shares: no share and no total is ever overdrawn, by any process."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path

import pytest

from bursar.analysts.shares import AnalystSettings, Shares
from bursar.core.accounting import Allotted, Event, Measured
from bursar.core.budget import Budget
from bursar.core.extensions import shares as accounts_module
from bursar.core.ledger import Record, SqliteLedger
from bursar.errors import AnalystError, BudgetError
from bursar.session import Bursar
from harness.faults import (
    KILLED,
    PRESETS,
    Ask,
    Steps,
    ask_and_die,
    complaints,
    copied,
    die,
    exit_code,
    found,
    later,
    loss,
    reopened,
    run,
    start,
    steps_of,
    steps_to_kill,
)
from harness.patience import PATIENCE, until
from harness.small import charter, config, engine

TEXT = "SELECT sex, COUNT(*) FROM people GROUP BY sex"
PRICE = Fraction(1, 512)
"""Of one measurement by the preset `fixed`: both sexes have a row, and nobody is in both."""

EACH = 4
"""How often a share pays."""

EPSILON = float(32 * EACH * PRICE)


def opened(place: Path, analyst: str, believed: Mapping[str, Fraction], epsilon: float = EPSILON) -> Bursar:
    """An engine whose config says whatever it says about shares."""
    settings = config(budget=Budget.of(epsilon=epsilon), analysts=AnalystSettings(shares=Shares(believed)))
    ledger = SqliteLedger.open(place, charter(settings), busy_timeout=PATIENCE)
    return engine(settings=settings, ledger=ledger, preset=PRESETS["fixed"], analyst=analyst)


def given_out(place: Path, shares: Mapping[str, Fraction], epsilon: float = EPSILON) -> Path:
    found(place, epsilon)
    with opened(place, "owner", shares, epsilon) as bursar:
        bursar.owner.declare_shares()
    return place


def overdrawn(records: Sequence[Record], budget: int) -> list[str]:
    """Everything in a log that goes beyond a share or the total, worked out apart from the engine."""
    wrong: list[str] = []
    shares: dict[str, Fraction] = {}
    events: dict[str, list[Event]] = {}
    for record in records:
        if isinstance(record.event, Allotted):
            shares = dict(record.event.shares)
        elif isinstance(record.event, Measured):
            events.setdefault(record.analyst, []).append(record.event)
            if shares and record.analyst not in shares:
                wrong.append(f"{record.analyst} has no share at {record.position}")
        for name, share in shares.items():
            if loss(events.get(name, [])) > share * budget:
                wrong.append(f"{name} has overdrawn the share at {record.position}")
    if loss([event for own in events.values() for event in own]) > budget:
        wrong.append("the total is overdrawn")
    return wrong


# -- 32 analysts at once --------------------------------------------------------------------------------------


def asking(place: Path, analyst: str, believed: Mapping[str, Fraction], requests: int) -> None:
    """One process of one analyst, who asks in two threads; what was granted, refused, and not admitted."""
    outcomes: list[str] = []  # both threads append: to count in one place would be a race of its own

    def ask(bursar: Bursar, thread: int) -> None:
        for number in range(requests // 2):
            try:
                bursar.query(TEXT, key=f"{thread} {number}", epsilon=1)
                outcomes.append("granted")
            except BudgetError as refusal:
                outcomes.append("refused" if refusal.limit == f"is left of the share of {analyst}" else "wrongly")
            except AnalystError:
                outcomes.append("unknown")

    with opened(place, analyst, believed) as bursar:
        threads = [threading.Thread(target=ask, args=(bursar, thread)) for thread in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    (place.parent / f"tally {analyst}").write_text(json.dumps(Counter(outcomes)))


@contextmanager
def watched(place: Path) -> Iterator[list[str]]:
    """What is overdrawn at any time while the block runs, as another process sees it."""
    seen: list[str] = []
    over = threading.Event()

    def watch() -> None:
        with opened(place, "owner", {}) as bursar:
            while not over.is_set():
                seen.extend(overdrawn(bursar.ledger.records(), bursar.config.budget.units))
                time.sleep(0.1)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("analysts", [4, pytest.param(32, marks=pytest.mark.heavy)])
def test_analysts_at_once_never_overdraw(tmp_path: Path, analysts: int) -> None:
    """Whatever their configs say: one in four believes that the whole budget is theirs, and two have no share."""
    equal = {f"analyst {number}": Fraction(1, 32) for number in range(analysts)}
    place = given_out(tmp_path / "people.bursar" / "ledger.sqlite", equal)
    names = [*equal, "stranger", "owner"]
    believed = [{name: Fraction(1)} if number % 4 == 0 else equal for number, name in enumerate(names)]
    with watched(place) as seen:
        pairs = zip(names, believed, strict=True)
        children = [start(asking, place, name, shares, EACH + 2) for name, shares in pairs]
        assert [exit_code(child) for child in children] == [0] * len(names)
    assert seen == []
    tallies = {name: json.loads((place.parent / f"tally {name}").read_text()) for name in names}
    assert [tallies[name] for name in equal] == [{"granted": EACH, "refused": 2}] * analysts
    assert [tallies[name] for name in ("stranger", "owner")] == [{"unknown": EACH + 2}] * 2
    with opened(place, "owner", equal) as bursar:
        assert bursar.kernel.left() == (32 - analysts) * bursar.config.budget.units // 32
        assert {bursar.kernel.account(name).left for name in equal} == {0}
        assert overdrawn(bursar.ledger.records(), bursar.config.budget.units) == []
        assert bursar.owner.verify().answers == analysts * EACH


def test_a_kernel_that_forgets_the_accounts_would_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shares = {"ann": Fraction(1, 32)}
    place = given_out(tmp_path / "people.bursar" / "ledger.sqlite", shares)
    monkeypatch.setattr(accounts_module, "share_of", lambda budget, fraction: budget.units)
    with opened(place, "ann", shares) as bursar:
        for number in range(EACH + 1):
            bursar.query(TEXT, key=str(number), epsilon=1)
        assert overdrawn(bursar.ledger.records(), bursar.config.budget.units) != []


# -- shares that change while people ask ----------------------------------------------------------------------

FIRST = {"ann": Fraction(3, 4), "bob": Fraction(1, 4)}
SECOND = {"ann": Fraction(1, 4), "bob": Fraction(1, 4), "eve": Fraction(1, 2)}
SPENDERS = ("ann", "bob", "eve")


def changing(place: Path) -> None:
    """The owner gives out shares in one way and the other, as long as what was spent allows it and anybody spends."""
    with opened(place, "owner", {}) as bursar:
        while not all((place.parent / f"{name} is done").exists() for name in SPENDERS):
            for shares in (SECOND, FIRST):
                with suppress(AnalystError):
                    bursar.kernel.allot(shares)
            (place.parent / "changed").touch()
            time.sleep(0.01)


def spending(place: Path, analyst: str, requests: int) -> None:
    """Ask once the shares have changed for the first time."""
    try:
        until((place.parent / "changed").exists)
        with opened(place, analyst, FIRST) as bursar:
            for number in range(requests):
                try:
                    bursar.query(TEXT, key=str(number), epsilon=1)
                except (BudgetError, AnalystError):
                    time.sleep(0.01)
    finally:
        (place.parent / f"{analyst} is done").touch()


@pytest.mark.heavy
def test_shares_that_change_meanwhile_are_never_overdrawn(tmp_path: Path) -> None:
    place = given_out(tmp_path / "people.bursar" / "ledger.sqlite", FIRST)
    children = [start(changing, place), *(start(spending, place, name, 60) for name in SPENDERS)]
    assert [exit_code(child) for child in children] == [0] * 4
    with opened(place, "owner", {}) as bursar:
        records = bursar.ledger.records()
        assert overdrawn(records, bursar.config.budget.units) == []
        assert sum(isinstance(record.event, Allotted) for record in records) > 2
        assert {record.analyst for record in records} >= {"owner", "ann", "bob"}
        for name in bursar.kernel.shares():
            own = [record.event for record in records if record.analyst == name]
            assert bursar.kernel.account(name).spent == loss(own) <= bursar.kernel.account(name).cap


# -- killed ---------------------------------------------------------------------------------------------------

HALVES = {"ana": Fraction(1, 2), "bob": Fraction(1, 2)}
ASK = Ask(key="k")
OTHER = Ask(key="other", text="SELECT COUNT(*) FROM people WHERE age < 5", rows=1)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with shares, in which Bob and Ana have asked something."""
    place = given_out(tmp_path_factory.mktemp("template") / "l" / "ledger.sqlite", HALVES, 1.0)
    for name in HALVES:
        with reopened(place, analyst=name) as bursar:
            OTHER.of(bursar)
    return place


def accounts_are_right(place: Path) -> list[str]:
    with later(3600), reopened(place) as bursar:
        records = bursar.ledger.records()
        wrong = overdrawn(records, bursar.config.budget.units)
        for name in bursar.kernel.shares():
            own = [record.event for record in records if record.analyst == name]
            if bursar.kernel.account(name).spent != loss(own):
                wrong.append(f"{name}: spent is not what the log says")
            if bursar.kernel.held(name):
                wrong.append(f"{name}: something is still set aside")
        return wrong


def check_kills(template: Path, home: Path, preset: str, steps: list[int]) -> None:
    for step in steps:
        place = copied(template, home / f"step {step}")
        assert run(ask_and_die, place, preset, (ASK,), step) == KILLED
        assert accounts_are_right(place) == [], step
        assert complaints(place, [ASK], preset=preset) == [], step
        assert accounts_are_right(place) == [], step


def test_killed_at_some_steps_of_a_question(template: Path, tmp_path: Path) -> None:
    for preset in ("default", "row by row"):
        home = tmp_path / preset
        names = steps_of(ask_and_die, copied(template, home / "whole"), preset, (ASK,))
        turning = [names.index(name) + 1 for name in ("after RowTransaction.append", "before COMMIT", "after COMMIT")]
        check_kills(template, home, preset, sorted({*turning, *random.sample(range(1, len(names) + 1), 2)}))


@pytest.mark.heavy
@pytest.mark.parametrize("preset", ["default", "row by row"])
def test_killed_at_every_step_of_a_question(template: Path, tmp_path: Path, preset: str) -> None:
    names = steps_of(ask_and_die, copied(template, tmp_path / "whole"), preset, (ASK,))
    check_kills(template, tmp_path, preset, steps_to_kill(len(names)))


NEW = {"ana": Fraction(1, 4), "bob": Fraction(1, 4), "eve": Fraction(1, 2)}


def give_out_and_die(place: Path, at: int) -> None:
    steps = Steps(at, die)
    steps.install(setattr)
    with opened(place, "owner", NEW, 1.0) as bursar:
        bursar.owner.declare_shares()
    (place.parent / "steps").write_text("\n".join(steps.passed))


@pytest.mark.heavy
def test_new_shares_are_given_out_whole_or_not_at_all(template: Path, tmp_path: Path) -> None:
    names = steps_of(give_out_and_die, copied(template, tmp_path / "whole"))
    durable = names.index("after COMMIT") + 1
    for step in sorted({names.index("before COMMIT") + 1, durable, *random.sample(range(1, len(names) + 1), 6)}):
        place = copied(template, tmp_path / f"step {step}")
        assert run(give_out_and_die, place, step) == KILLED
        with reopened(place) as bursar:
            assert bursar.kernel.shares() in (HALVES, NEW)
            assert (bursar.kernel.shares() == NEW) == (step >= durable), names[step - 1]
        assert accounts_are_right(place) == []
        assert run(give_out_and_die, place, 0) == 0
        with reopened(place) as bursar:
            assert bursar.kernel.shares() == NEW

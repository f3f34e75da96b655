"""The black-box audit finds nothing in the engine as it is, and finds each planted fault."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
import pytest

import bursar.audit
from bursar.analysts.shares import AnalystSettings, Seed, Shares
from bursar.audit import Audit, audit
from bursar.audit.bounds import detectable, loss_of, lower_bound
from bursar.audit.neighbours import raw_value, rows_of_one, write_neighbours
from bursar.audit.sessions import SESSIONS
from bursar.core.accounting import Failed, Mode, Noise
from bursar.core.budget import Budget
from bursar.core.domain import Bins, Categories, Dates, Domain, IntegerRange, Neighbours, Period, Stray, Unit
from bursar.core.extensions.sparse_vector import SparseVectors
from bursar.core.noise.system import Randomness, SystemRandomness
from bursar.core.source.duckdb import DuckDBSource
from bursar.planner.choose import Preset
from bursar.proposers.direct import Direct
from bursar.proposers.reuse import Exact, Refine
from harness.small import config

EVERY_KIND = Domain(
    (
        Categories(name="sex", values=("F", "M")),
        IntegerRange(name="age", lower=0, upper=3, outside=Stray.OTHER),
        Bins(name="income", edges=(0.0, 10.0, 20.0), outside=Stray.OTHER, null=Stray.OTHER),
        Dates(name="day", first=date(2024, 1, 1), last=date(2024, 3, 1), by=Period.MONTH, outside=Stray.OTHER),
        Categories(name="level", values=(1, 2), outside=0, null=1),
    )
)

SEVERAL = Unit(column="person", max_contributions=2)
EPSILON = loss_of(Mode.PURE, None)

QUICK = Preset("quick", (Exact(), Refine(), Direct()))
"""What is needed to refine, and nothing that takes long to plan."""


class Weaker(SystemRandomness):
    """Draws with less noise than was asked for."""

    def __init__(self, share: float) -> None:
        self.share = share

    def draw(self, noise: Noise, size: int) -> np.ndarray:
        return super().draw(replace(noise, scale=noise.scale * self.share), size)


class Afresh(SystemRandomness):
    """Refines with noise that has nothing to do with the noise that was there."""

    def refine(self, current: np.ndarray, before: Noise, after: Noise) -> np.ndarray:
        return self.draw(after, current.size)


class Surer(SystemRandomness):
    """Picks as if half the scale had been asked for."""

    def select(self, scores: np.ndarray, *, count: int, scale: float) -> np.ndarray:
        return super().select(scores, count=count, scale=scale / 2)


class Generous(DuckDBSource):
    """Keeps one row too many of each unit."""

    def __init__(self, location: object, domain: Domain, unit: Unit, **facts: Any) -> None:
        super().__init__(location, domain, replace(unit, max_contributions=unit.max_contributions + 1), **facts)


class Boundless(DuckDBSource):
    """Keeps every row of each unit."""

    def __init__(self, location: object, domain: Domain, unit: Unit, **facts: Any) -> None:
        super().__init__(location, domain, replace(unit, max_contributions=10**6), **facts)


def played(
    name: str, trials: int, settings: Any = None, *, randomness: Randomness | None = None, preset: Preset = QUICK
) -> Audit:
    sessions = [session for session in SESSIONS if session.name == name]
    return audit(settings or config(), trials=trials, sessions=sessions, randomness=randomness, preset=preset)


# -- the tables ------------------------------------------------------------------------------------------------------


@pytest.mark.thinned(3)
@pytest.mark.parametrize("attribute", EVERY_KIND.attributes, ids=lambda a: a.name)
def test_a_raw_value_falls_into_its_cell(attribute, tmp_path) -> None:  # type: ignore[no-untyped-def]
    domain = Domain((attribute,))
    for cell in range(attribute.size):
        path = tmp_path / f"{cell}.csv"
        path.write_text(f'{attribute.name},x\n"{raw_value(attribute, cell)}",1\n'.replace('""', ""))
        table = DuckDBSource(path, domain, Unit(), key=bytes(32), max_rows=5).table((attribute.name,))
        assert table.tolist() == [int(i == cell) for i in range(attribute.size)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("column", [None, "person", "age"])
def test_neighbours_differ_by_one_unit_with_all_its_rows(neighbours, column, tmp_path) -> None:  # type: ignore[no-untyped-def]
    many = 1 if column is None else 3
    unit = Unit(column=column, max_contributions=many, neighbours=neighbours)
    tables = write_neighbours(config(domain=EVERY_KIND, unit=unit, public_size=31), tmp_path)
    for bounded, rows in ((unit, many), (replace(unit, column=None, max_contributions=1), rows_of_one(unit))):
        left, right = (
            DuckDBSource(path, EVERY_KIND, bounded, key=bytes(32), max_rows=99).table(EVERY_KIND.names)
            for path in (tables.without, tables.including)
        )
        difference = (right - left).ravel()
        found = sorted(difference[difference != 0])
        assert found == ([rows] if neighbours is Neighbours.ADD_REMOVE else [-rows, rows]) or column == "age"
    assert rows_of_one(unit) == (1 if column is None else 7)


# -- the bounds ------------------------------------------------------------------------------------------------------


def laplace(rng: np.random.Generator, epsilon: float, *shape: int) -> np.ndarray:
    rate = 1 - np.exp(-epsilon)
    return (rng.geometric(rate, shape) - rng.geometric(rate, shape)).astype(float)


def test_the_bound_on_known_laws() -> None:
    rng = np.random.default_rng(0)
    left, right = laplace(rng, 1.0, 40_000, 1), laplace(rng, 1.0, 40_000, 1)
    assert lower_bound(left, right, alpha=1e-6, loss=EPSILON) < 0.05
    assert 0.9 < lower_bound(left + 1, right, alpha=1e-6, loss=EPSILON) <= 1.0


def test_losses_of_independent_numbers_add_up() -> None:
    rng = np.random.default_rng(0)
    left, right = laplace(rng, 1.0, 40_000, 3), laplace(rng, 1.0, 40_000, 3)
    assert 1.5 < lower_bound(left + 1, right, alpha=1e-6, loss=EPSILON) <= 3.0


@pytest.mark.parametrize("order", [None, 2, 8])
def test_rho_is_bounded_without_a_delta(order: int | None) -> None:
    rng = np.random.default_rng(0)
    loss = loss_of(Mode.CONCENTRATED if order is None else Mode.RENYI, order)
    left, right = rng.normal(1.0, 1.0, (40_000, 1)), rng.normal(0.0, 1.0, (40_000, 1))
    assert 0.15 < lower_bound(left, right, alpha=1e-6, loss=loss) <= 0.5
    assert lower_bound(right, right[::-1], alpha=1e-6, loss=loss) < 0.01


def test_what_is_called_detectable_is_found() -> None:
    rng = np.random.default_rng(0)
    least = detectable(4000, 1.0, alpha=1e-6, mode=Mode.PURE, order=None)
    assert least is not None
    assert 1.0 < least < 2.0
    found = 0
    for _ in range(50):
        left, right = laplace(rng, least, 4000, 1), laplace(rng, least, 4000, 1) + 1
        found += lower_bound(left, right, alpha=1e-6, loss=EPSILON) > 1.0
    assert found >= 45  # .99 is promised: fewer come once in 10^6
    assert detectable(20, 1.0, alpha=1e-6, mode=Mode.PURE, order=None) is None


# -- whole audits ----------------------------------------------------------------------------------------------------


@pytest.mark.heavy
def test_a_quick_audit_passes_and_a_gross_fault_does_not() -> None:
    fair = played("groups", 120)
    assert fair.passed
    assert "nothing wrong" in str(fair)
    faulty = played("groups", 120, randomness=Weaker(0.1))
    assert not faulty.passed
    assert "MORE IS REVEALED" in str(faulty)


SETTINGS = {
    "pure": config(),
    "several rows": config(unit=SEVERAL),
    "replace-one": config(unit=Unit(neighbours=Neighbours.REPLACE_ONE), public_size=31),
    "rho": config(budget=Budget.of(rho=1.0), unit=SEVERAL),
    "renyi": config(budget=Budget.of(epsilon=1.0, delta=1e-6, accountant="rdp")),
    "shares": config(analysts=AnalystSettings(policy="independent", shares=Shares.of({"ana": 0.7, "bo": 0.3}))),
    "seeded": config(
        analysts=AnalystSettings(
            policy="seeded-cache",
            scheduler="round-robin",
            shares=Shares.of({"ana": 0.5, "bo": 0.5}),
            seed=Seed(fraction=Shares.of({"x": 0.1})["x"], columns=("sex",)),
        )
    ),
}


@pytest.mark.heavy
@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", SETTINGS)
def test_every_session_is_played_under_every_kind_of_config(name: str) -> None:
    result = audit(SETTINGS[name], trials=2)
    assert [one.session for one in result.played] == [session.name for session in SESSIONS]
    assert result.left_out == ()
    assert result.passed
    assert all(one.claimed > 0 for one in result.played)
    assert all(one.detectable is None for one in result.played)
    assert "too few sessions" in str(result)


def test_a_session_that_has_no_room_is_named() -> None:
    text_only = Domain((Categories(name="sex", values=("F", "M")),))
    result = audit(config(domain=text_only), trials=2, preset=QUICK)
    assert result.left_out == ("sum",)
    assert "not played, as this config has no room for it: sum" in str(result)


@pytest.mark.soak
@pytest.mark.parametrize("name", ["pure", "several rows", "replace-one", "rho"])
def test_the_engine_keeps_what_it_charges(name: str) -> None:
    result = audit(SETTINGS[name], trials=800)
    assert result.passed, str(result)
    assert result.played[0].seen > 0.1 * result.played[0].claimed  # the audit can see something at all


# -- planted faults --------------------------------------------------------------------------------------------------


@pytest.mark.soak
def test_contributions_without_a_bound_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bursar.audit, "DuckDBSource", Boundless)
    assert not played("groups", 600, config(unit=SEVERAL)).passed


@pytest.mark.soak
def test_one_row_too_many_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bursar.audit, "DuckDBSource", Generous)
    result = played("groups", 1200, config(unit=Unit(column="person", max_contributions=1)))
    assert not result.passed, str(result)


@pytest.mark.heavy
def test_half_the_noise_is_caught() -> None:
    result = played("groups", 1200, randomness=Weaker(0.5))
    assert not result.passed, str(result)


@pytest.mark.soak
def test_too_little_gaussian_noise_is_caught() -> None:
    result = played("groups", 1200, config(budget=Budget.of(rho=1.0)), randomness=Weaker(0.4))
    assert not result.passed, str(result)


@pytest.mark.soak
def test_refined_noise_that_is_drawn_afresh_is_caught() -> None:
    result = played("tighter", 1500, randomness=Afresh())
    assert not result.passed, str(result)


@pytest.mark.soak
def test_a_sparse_vector_that_stays_open_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    end = SparseVectors.end

    def stays(self: SparseVectors, transaction: Any, event: Any, facts: Any) -> None:
        if not isinstance(event, Failed):
            end(self, transaction, event, facts)

    monkeypatch.setattr(SparseVectors, "end", stays)
    result = played("tests", 700)
    assert not result.passed, str(result)


@pytest.mark.soak
def test_half_the_scale_of_a_pick_is_caught() -> None:
    result = played("picks", 1500, randomness=Surer())
    assert not result.passed, str(result)


def test_an_audit_that_could_play_nothing_has_not_passed() -> None:
    nothing = Audit(trials=10, confidence=0.99, unit="epsilon", played=(), left_out=("groups",))
    assert not nothing.passed
    assert "NOTHING WAS AUDITED" in str(nothing)

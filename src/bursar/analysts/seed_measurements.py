"""Phase 1 of Seeded Cache and Reconstruct: a basis, measured once for everyone, from a fraction of every share."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from bursar.analysts.shares import EVERYONE, Seed
from bursar.core.accounting import Book, Measured, Mode, from_units
from bursar.core.domain import Attribute, Domain
from bursar.core.kernel import Kernel
from bursar.core.queries import Mask, Product, Steps
from bursar.errors import BudgetError, Busy
from bursar.papers.eigen_design.fourier import wavelet
from bursar.planner.grant import Grant
from bursar.strategies.best import LineWorkload, best_strategy
from bursar.strategies.hierarchical import hierarchical
from bursar.strategies.plan import StrategyPart, StrategyPlan
from bursar.strategies.ranges import RangeFamily

PURPOSE = "the seed: measured once for everyone"
PROPOSER = "seed"


def plan_of(seed: Seed, domain: Domain, mode: Mode, *, max_rows: int) -> StrategyPlan:
    """What to measure; any question about the seed's columns follows from it, or those of its workload.

    `best` is the best strategy known: for the declared workload, else for all ranges of ordered columns and all values
    of the others.
    """
    if seed.workload is not None:
        return best_strategy(seed.workload, mode)
    columns = [domain[name] for name in seed.columns]
    if seed.basis == "best":
        if len(columns) == 1 and columns[0].ordered:
            (column,) = columns
            line = LineWorkload(family=RangeFamily.RANGES, column=column.name, cells=column.size, max_rows=max_rows)
            return best_strategy(line, mode)
        return best_strategy(Product(tuple(_mask(column, _wanted(column)) for column in columns)), mode)
    product = Product(tuple(_mask(column, BASES[seed.basis](column.size)) for column in columns))
    (norm,) = product.norms(1 if mode is Mode.PURE else 2)
    scale = float(norm.largest()) if mode is Mode.PURE else math.sqrt(norm.largest())
    return StrategyPlan(
        kind=seed.basis,
        mode=mode,
        parts=(StrategyPart(map=product, scale=scale),),
        ratio=None,
        source=None,
        answers=None,
    )


def events_of(plan: StrategyPlan, cap: int, *, version: int, empty_book: Callable[[], Book]) -> tuple[Measured, ...]:
    """The measurements of least noise that cost at most `cap` units of 2^-50 by themselves."""
    unit = plan.unit(from_units(cap))
    while True:
        events = tuple(Measured(strategy=part, noise=noise, version=version) for part, noise in plan.noises(unit))
        price = empty_book().price(events)
        if price <= cap:
            return events
        over = price / cap  # a unit of several rows, or neighbours that are replaced, cost more
        unit *= (over if plan.mode is Mode.PURE else math.sqrt(over)) * (1 + 1e-9)


def plant(kernel: Kernel, seed: Seed) -> None:
    """Measure the seed, once, with all that everyone's account has.

    Edge cases: a version of the data that is declared later gets no seed, as the account is empty by then. Busy is
    raised where another process is about to measure it.
    """
    if EVERYONE not in kernel.shares():
        return  # the data owner has not given out shares yet
    account = kernel.account(EVERYONE)
    if account.spent > 0:
        return
    plan = plan_of(seed, kernel.domain, kernel.budget.mode, max_rows=kernel.max_rows)
    events = events_of(plan, account.cap, version=kernel.version(), empty_book=kernel.empty_book)
    try:
        with Grant(kernel, EVERYONE, PURPOSE, events, account.cap, proposer=PROPOSER) as grant:
            for event in events:
                grant.measure(event.strategy, event.noise)
    except BudgetError as fault:
        raise Busy("the seed is being measured right now") from fault


def _mask(column: Attribute, steps: Steps) -> Mask:
    return Mask((column.name,), (column.size,), steps)


def _wanted(column: Attribute) -> Steps:
    if not column.ordered:
        return Steps.identity(column.size)
    lows, highs = np.triu_indices(column.size)
    return Steps.ranges(lows, highs + 1, column.size)


def _tree(size: int) -> Steps:
    return Steps.dense(hierarchical(size).astype(np.int64))


def _haar(size: int) -> Steps:
    return Steps.dense(wavelet(size).astype(np.int64))


BASES: dict[str, Callable[[int], Steps]] = {"histogram": Steps.identity, "hierarchical": _tree, "wavelet": _haar}
"""The rows of each basis for a column of so many cells; over several columns every row times every row."""

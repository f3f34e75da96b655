"""What the log says about marginals: whole ones, and residuals of columns, each with the variance of its noise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from bursar.arrays import Integers
from bursar.core.accounting import Measured, Noise, NoiseKind, Versioned
from bursar.core.domain import Domain
from bursar.core.ledger import Record
from bursar.core.queries import LinearMap, Mask, Product, Stack, Steps
from bursar.strategies.marginals import every_value

Names = tuple[str, ...]

MOST_COLUMNS = 8
"""Most columns of a marginal that is used: it has 2^k parts."""


@dataclass(frozen=True, kw_only=True)
class MarginalSource:
    """Which columns were measured together, and how well; known before anything is bought.

    `residual` says that the rows of `strategies/marginals.py` were measured, not the cells themselves. `variance` is
    sigma^2 for Gaussian noise and 2 b^2 for Laplace noise, never below that of the discrete laws.
    """

    columns: Names  # in the order of the domain
    variance: float
    heavy: bool  # Laplace: tails are heavier than Gaussian ones
    residual: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class LogEvidence:
    """A source with the noisy values, one axis per column."""

    source: MarginalSource
    table: Integers


def source_of(columns: Names, noise: Noise, *, residual: bool = False) -> MarginalSource:
    """A measured marginal, with the variance of its noise."""
    heavy = noise.kind is NoiseKind.LAPLACE
    return MarginalSource(
        columns=columns, variance=noise.scale**2 * (2 if heavy else 1), heavy=heavy, residual=residual
    )


def evidence_in(records: Iterable[Record], domain: Domain) -> list[LogEvidence]:
    """All marginals and residuals among the measurements of the data's last version.

    Guarantees: only the log is looked at. Values that were refined later are used as they were first measured: they are
    still noisy values of their law.
    Edge cases: measurements of anything else are passed over.
    """
    listed = list(records)
    versions = [record.event.version for record in listed if isinstance(record.event, Measured | Versioned)]
    evidence: list[LogEvidence] = []
    for record in listed:
        event = record.event
        if isinstance(event, Measured) and event.version == max(versions):
            evidence.extend(_in_measurement(event.strategy, event.noise, record.values, domain))
    return evidence


def _in_measurement(strategy: LinearMap, noise: Noise, values: Integers, domain: Domain) -> Iterator[LogEvidence]:
    parts: Sequence[LinearMap] = strategy.parts if isinstance(strategy, Stack) else (strategy,)
    end = 0
    for part in parts:
        first, end = end, end + part.rows
        if not isinstance(part, Product):
            continue
        kinds = [_kind(mask) for mask in part.masks]
        readable = all(kind is not None for kind in kinds) and len(part.attrs) <= MOST_COLUMNS
        residual = any(kind == "residual" for kind in kinds)
        if not readable or (residual and not all(kind == "residual" for kind in kinds)):
            continue
        masks = [mask for mask, kind in zip(part.masks, kinds, strict=True) if kind != "total"]
        names = tuple(name for mask in masks for name in mask.attrs)
        columns = domain.ordered(names)
        table = values[first:end].reshape([mask.rows for mask in masks] if residual else domain.sizes(names))
        yield LogEvidence(
            source=source_of(columns, noise, residual=residual),
            table=table.transpose([names.index(name) for name in columns]),
        )


def _kind(mask: Mask) -> str | None:
    """Whether the rows of a mask are its cells, their total, or the residual of one column; None for others."""
    if _same(mask.steps, _cells(mask.steps.size)):
        return "cells"
    if mask.rows == 1 and _same(mask.steps, Steps.total(mask.steps.size)):
        return "total"
    if len(mask.attrs) == 1 and mask.rows in (1, mask.steps.size) and _same(mask.steps, _residual(mask.steps.size)):
        return "residual"
    return None


def _same(left: Steps, right: Steps) -> bool:
    pairs = ((left.starts, right.starts), (left.at, right.at), (left.jump, right.jump))
    return left is right or all(np.array_equal(a, b) for a, b in pairs)


@lru_cache(maxsize=256)
def _cells(size: int) -> Steps:
    return Steps.identity(size)


@lru_cache(maxsize=256)
def _residual(size: int) -> Steps:
    return every_value("", size).mask.steps


@lru_cache(maxsize=1024)
def cells_of(name: str, size: int) -> Mask:
    """All values of a column, each a row of its own."""
    return Mask((name,), (size,), _cells(size))


def marginal_map(domain: Domain, columns: Names) -> Product:
    """The map that counts every joint cell of the columns, the last one running fastest."""
    return Product(tuple(cells_of(name, domain[name].size) for name in columns))

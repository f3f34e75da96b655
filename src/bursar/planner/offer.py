"""Offers: a price, an error law, and a plan that calls kernel verbs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from bursar.domain import Domain
from bursar.inference.estimate import ErrorLaw, Estimate
from bursar.inference.nodes import Nodes
from bursar.inference.views import Measurements, Reconstructions
from bursar.kernel.accounting import Event, Mode
from bursar.kernel.verbs import Verbs
from bursar.planner.rents import Rents
from bursar.planner.request import Request


@dataclass(frozen=True, kw_only=True)
class Price:
    """What a plan would add to what is spent: its events, and the bound in units of 2^-50 that it is admitted under."""

    events: tuple[Event, ...] = ()
    at_most: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Offer:
    """One way to answer a request. `run` is given the kernel's verbs; a free offer calls none."""

    proposer: str
    price: Price
    law: ErrorLaw
    run: Callable[[Verbs], Estimate]
    reuses: int = 0  # rows of the log
    buys: int = 0  # rows to be measured
    note: str = ""
    credit: int = 0  # units of 2^-50 that it may bid below its price, for what it will save later

    @property
    def free(self) -> bool:
        return self.price.at_most == 0

    @property
    def bid(self) -> int:
        """What the offer competes with, in units of 2^-50; below zero where the credit exceeds the price."""
        return self.price.at_most - self.credit


@dataclass(frozen=True, kw_only=True)
class Views:
    """What a proposer may look at: public facts and the log. Never the data."""

    domain: Domain
    mode: Mode
    version: int
    position: int  # of the last record of the log
    left: int  # units of 2^-50
    measurements: Measurements
    reconstructions: Reconstructions
    rents: Rents
    nodes: Nodes
    price: Callable[[tuple[Event, ...]], int]


class Proposer(Protocol):
    """One way to answer questions. `offers` may return nothing."""

    name: str

    def offers(self, request: Request, views: Views) -> list[Offer]: ...

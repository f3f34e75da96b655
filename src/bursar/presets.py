"""Presets: which ways of answering take part."""

from __future__ import annotations

from dataclasses import replace

from bursar.inference.simultaneous import Family
from bursar.kernel.accounting import Mode
from bursar.planner.choose import Preset
from bursar.planner.offer import Proposer
from bursar.proposers.cachedp import modules
from bursar.proposers.direct import Direct
from bursar.proposers.exact import Exact
from bursar.proposers.incremental import Incremental
from bursar.proposers.invest import Invest
from bursar.proposers.reconstruct import Reconstruct
from bursar.proposers.refine import Refine
from bursar.proposers.simultaneous import Estimators, OnePurchase, Reuse
from bursar.proposers.strategy import Strategy
from bursar.proposers.tree import Tree

THETA = {Mode.PURE: 1.0, Mode.CONCENTRATED: 0.4}
"""From which share of its price on rent justifies a strategy for all questions; sooner where each one is cheap."""

NODES = {Mode.PURE: 0.3, Mode.CONCENTRATED: 1.0}
"""The same for the nodes of trees, which many questions share; with Gaussian noise `incremental` does better."""

default = Preset(
    "default",
    (Exact(), Reconstruct(), Incremental(), Tree(theta=NODES), Refine(), Strategy(), Invest(theta=THETA), Direct()),
)

cachedp = Preset("cachedp", modules(), sequential=True)
"""CacheDP as it was published, charged as in its paper: for comparison."""


def under(family: Family | None, preset: Preset) -> Preset:
    """The preset under the simultaneous contract for a family of questions; as it is, per-query, where there is none.

    Proposers that live on rows of several purchases have no place there: `Reuse` does what can be done with each one.
    """
    if family is None:
        return preset
    estimators = Estimators(family)
    kinds = Exact | Reconstruct | Incremental | Tree | Refine
    buying = [one for one in preset.proposers if not isinstance(one, kinds)]
    buying = [Invest(theta=THETA, top_up=False) if isinstance(one, Invest) else one for one in buying]
    proposers: tuple[Proposer, ...] = (Reuse(estimators), *(OnePurchase(one, estimators) for one in buying))
    return replace(preset, name=f"{preset.name}, simultaneous", proposers=proposers, family=family)

"""Presets: which ways of answering take part."""

from __future__ import annotations

from dataclasses import replace

from bursar.core.accounting import Mode
from bursar.core.domain import Domain
from bursar.estimation.simultaneous import Family
from bursar.papers import boost as boost_paper
from bursar.papers import cachedp as cachedp_paper
from bursar.papers import multi_analyst as multi_analyst_paper
from bursar.planner.choose import Preset
from bursar.planner.offer import Proposer
from bursar.proposers.direct import Direct, Partwise
from bursar.proposers.incremental import Incremental
from bursar.proposers.invest import Invest, Invested
from bursar.proposers.partitions import ByPartition
from bursar.proposers.pmw import TIGHT, Pmw
from bursar.proposers.pmw_windows import PmwWindows
from bursar.proposers.reuse import Exact, Reconstruct, Refine
from bursar.proposers.simultaneous import Estimators, OnePurchase, Reuse
from bursar.proposers.strategy import Strategy
from bursar.proposers.synthetic import Synthetic
from bursar.proposers.tree import Tree
from bursar.views.histograms import Names

THETA = {Mode.PURE: 1.0, Mode.CONCENTRATED: 0.4, Mode.RENYI: 0.4}
"""From which share of its price on rent justifies a strategy for all questions; sooner where each one is cheap."""

NODES = {Mode.PURE: 0.3, Mode.CONCENTRATED: 1.0, Mode.RENYI: 1.0}
"""The same for the nodes of trees, which many questions share; with Gaussian noise `incremental` does better."""

LEARNT_CELLS = 2048
"""Columns of more joint cells than a strategy for all questions can have are learnt instead, question by question."""

_INVEST = Invest(theta=THETA)

default = Preset(
    "default",
    (
        Exact(),
        Partwise(),
        Reconstruct(),
        Invested(_INVEST),
        ByPartition(theta=THETA),
        Incremental(),
        Tree(theta=NODES),
        Refine(),
        Strategy(),
        _INVEST,
        Pmw(replace(TIGHT, least_cells=LEARNT_CELLS)),
        PmwWindows(replace(TIGHT, least_cells=LEARNT_CELLS)),
        Direct(),
        Synthetic(),
    ),
    plain=Direct(),
)

cachedp = cachedp_paper.preset
multi_analyst = multi_analyst_paper.preset
boost, boost_cold = boost_paper.preset, boost_paper.cold_preset
"""The published systems, charged as in their papers: for comparison."""


def under(family: Family | None, preset: Preset, domain: Domain, groups: tuple[Names, ...] = ()) -> Preset:
    """The preset for a data set: under its contract, with its partitions, and with its groups of columns."""
    if family is not None:
        return _simultaneous(family, preset)
    preset = _grouped(preset, groups) if groups else preset
    return preset if domain.partition is None else _by_partition(preset)


def _grouped(preset: Preset, groups: tuple[Names, ...]) -> Preset:
    learns = Pmw | PmwWindows
    proposers = (
        proposer.grouped(groups) if isinstance(proposer, learns) else proposer for proposer in preset.proposers
    )
    return replace(preset, proposers=tuple(proposers))


def _by_partition(preset: Preset) -> Preset:
    """Only what works by partition: others may look at one not sealed yet, or tell all cells of all of them apart."""
    kinds = Reconstruct | Invested | Incremental | Tree | Refine | Strategy | Invest | Pmw
    return replace(
        preset, proposers=tuple(proposer for proposer in preset.proposers if not isinstance(proposer, kinds))
    )


def _simultaneous(family: Family, preset: Preset) -> Preset:
    """The preset under the simultaneous contract for a family of questions.

    Proposers that live on rows of several purchases have no place there: `Reuse` does what can be done with each one.
    """
    estimators = Estimators(family)
    kinds = Exact | Partwise | Reconstruct | Invested | ByPartition | Incremental | Tree | Refine
    kinds |= Pmw | PmwWindows | Synthetic
    buying = [proposer for proposer in preset.proposers if not isinstance(proposer, kinds)]
    buying = [Invest(theta=THETA, top_up=False) if isinstance(proposer, Invest) else proposer for proposer in buying]
    proposers: tuple[Proposer, ...] = (Reuse(estimators), *(OnePurchase(proposer, estimators) for proposer in buying))
    return replace(preset, name=f"{preset.name}, simultaneous", proposers=proposers, family=family, plain=None)

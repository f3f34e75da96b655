"""Presets: which ways of answering take part. A config names one for the life of its ledger.

A published system is charged as in its paper, by sequential composition, unless its name ends in `-profile`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from bursar.core.accounting import Mode
from bursar.core.domain import Domain
from bursar.core.extensions.open_keys import OpenText
from bursar.errors import ConfigError
from bursar.estimation.simultaneous import Family
from bursar.lazy_dataclass import dataclass
from bursar.planner.choose import Preset, ProposersInOrder
from bursar.planner.offer import GAUSSIAN_MODES, Proposer
from bursar.proposers.direct import Direct, Partwise
from bursar.proposers.reuse import Exact, Known, Reconstruct, Refine

if TYPE_CHECKING:
    from bursar.views.histograms import Names

THETA = {Mode.PURE: 1.0, Mode.CONCENTRATED: 0.4, Mode.RENYI: 0.4}
"""From which share of its price on rent justifies a strategy for all questions; sooner where each one is cheap."""

NODES = {Mode.PURE: 0.3, Mode.CONCENTRATED: 1.0, Mode.RENYI: 1.0}
"""The same for the nodes of trees, which many questions share; with Gaussian noise `incremental` does better."""

LEARNT_CELLS = 2048
"""Columns of more joint cells than a strategy for all questions can have are learnt instead, question by question.

Not over windows of partitions: there every node of the tree learns by itself, and none is ready within thousands of
different questions. `PmwWindows` has its place in the presets of Boost, whose streams are that long.
"""


def _buying() -> tuple[Proposer, ...]:
    """What a question that is not free goes through; free answers need not import any of it."""
    from bursar.papers.eigen_design.named_strategies import named_strategies
    from bursar.proposers.apart import Apart
    from bursar.proposers.incremental import Incremental
    from bursar.proposers.invest import Invest, Invested
    from bursar.proposers.partitions import ByPartition
    from bursar.proposers.pmw import TIGHT, Pmw
    from bursar.proposers.strategy import Strategy
    from bursar.proposers.synthetic import Synthetic
    from bursar.proposers.tree import Tree

    invest, strategy = Invest(theta=THETA, rival=Direct()), Strategy()
    return (
        Invested(invest),
        ByPartition(theta=THETA),
        Incremental(),
        Tree(theta=NODES, rival=strategy, whole=invest),
        Refine(),
        strategy,
        invest,
        Pmw(replace(TIGHT, least_cells=LEARNT_CELLS)),
        Apart(strategy),
        Direct(),
        Synthetic(),
        *named_strategies(),
    )


BUYING = (
    *("invest", "partitions", "incremental", "tree", "refine", "strategy", "pmw", "apart", "direct", "synthetic"),
    *("eigen", "eigen-program-1", "eigen-separated", "eigen-principal", "wavelet", "fourier"),
)
"""What the log calls them."""

FREE = (Exact(), Partwise(), Reconstruct(), Known())
"""Who answers for nothing."""

default = Preset("default", ProposersInOrder(FREE, _buying, BUYING), plain=Direct())


def __getattr__(name: str) -> Preset:
    """The published systems, charged as in their papers: for comparison, and imported by whoever compares."""
    from bursar.papers import boost, cachedp, multi_analyst

    published = {
        "cachedp": cachedp.preset,
        "multi_analyst": multi_analyst.preset,
        "boost": boost.preset,
        "boost_cold": boost.cold_preset,
        "boost_gaussian": boost.gaussian_preset,
        "boost_printed": boost.printed_preset,
        "pmw": boost.vanilla_preset,
    }
    if name not in published:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return published[name]


_published = __getattr__

CACHEDP = "CacheDP (Mazmudar et al., 2022)"
BOOST = "Boost (Kostopoulou et al., 2023)"
MULTI_ANALYST = "Multi-Analyst (Pujol et al.)"
DEFAULT = "default"

EVERY_MODE = tuple(Mode)
BUDGETS = {
    True: ("was published for a budget of epsilon alone", "epsilon = 1.0 under [budget], without delta and rho"),
    False: ("has Gaussian noise, which a budget of epsilon alone does not know", "rho = 0.1 under [budget]"),
}
"""What is said of a budget that a preset does not know, by whether it knows epsilon alone."""


@dataclass(frozen=True, kw_only=True)
class ListedPreset:
    """A preset that can be named, with what it needs of a config."""

    paper: str
    line: str  # what it does
    make: Callable[[], Preset]  # anew for every data set: some remember what they read
    modes: tuple[Mode, ...] = (Mode.PURE,)  # kinds of budgets that it knows
    partitions: bool = False  # whether it knows data in partitions
    open_columns: bool = True  # whether it knows columns whose texts get cells in the course of time
    policy: str | None = None  # the only policy of [analysts] that it makes sense with

    def lacks(self, mode: Mode, domain: Domain, family: Family | None, policy: str) -> tuple[str, str]:
        """What a config has that the preset does not know, and what would work; two empty texts where it fits."""
        if family is not None:
            return 'was published for contract = "per-query"', 'contract = "per-query"'
        if mode not in self.modes:
            return BUDGETS[Mode.PURE in self.modes]
        if domain.partition is not None and not self.partitions:
            return "knows no partitions", "no [partition], or another preset"
        if not self.open_columns and any(isinstance(each, OpenText) for each in domain.attributes):
            return (
                "knows no open columns: its trees have all values",
                "values = [...], or another preset",
            )
        if self.policy not in (None, policy):
            return f'is what policy = "{self.policy}" answers with', f'policy = "{self.policy}" under [analysts]'
        return "", ""


def _cachedp(name: str, *, sequential: bool = True, every_quad: bool = False) -> Preset:
    """`every_quad` gives every pair of columns a quad-tree."""
    from bursar.papers.cachedp import modules

    return Preset(name, modules(quads="every") if every_quad else modules(), sequential=sequential)


def _apex(*, cached: bool) -> Preset:
    from bursar.papers.cachedp.apex import Apex  # loads scipy

    return Preset("apex-cache" if cached else "apex", (Apex(cached=cached),), sequential=True)


def _pioneer() -> Preset:
    from bursar.papers.cachedp.pioneer import Pioneer

    return Preset("pioneer", (Pioneer(),), sequential=True)


LISTED: dict[str, ListedPreset] = {
    DEFAULT: ListedPreset(
        paper="Bursar",
        line="every way to answer takes part; charged by the loss of each cell",
        make=lambda: default,
        modes=EVERY_MODE,
        partitions=True,
    ),
    "cachedp": ListedPreset(
        paper=CACHEDP,
        line="cached nodes of trees, strategy expander, proactive querying, relax privacy, as printed",
        make=lambda: _cachedp("cachedp"),
        open_columns=False,
    ),
    "cachedp-quads": ListedPreset(
        paper=f"{CACHEDP}, 8.1.2",
        line="the same, with a quad-tree for every pair of columns that is asked about together",
        make=lambda: _cachedp("cachedp-quads", every_quad=True),
        open_columns=False,
    ),
    "cachedp-profile": ListedPreset(
        paper=CACHEDP,
        line="what cachedp buys, charged by the loss of each cell as the default is",
        make=lambda: _cachedp("cachedp-profile", sequential=False),
        open_columns=False,
    ),
    "apex": ListedPreset(
        paper=f"APEx (Ge et al., 2019), compared with in {CACHEDP}",
        line="the cheaper of plain noise and a full tree, nothing remembered",
        make=lambda: _apex(cached=False),
    ),
    "apex-cache": ListedPreset(
        paper=f"APEx (Ge et al., 2019), compared with in {CACHEDP}",
        line="the same; an identical question, no more exact than before, is free",
        make=lambda: _apex(cached=True),
    ),
    "pioneer": ListedPreset(
        paper=f"Pioneer (Peng et al., 2013), compared with in {CACHEDP}",
        line="ranges of one column, each from earlier ranges and one fresh answer",
        make=_pioneer,
        open_columns=False,
    ),
    "boost": ListedPreset(
        paper=BOOST,
        line="PMW-Bypass and an exact cache, with the constants behind its figures",
        make=lambda: _published("boost"),
        modes=EVERY_MODE,
        partitions=True,
    ),
    "boost-cold": ListedPreset(
        paper=BOOST,
        line="the same, every histogram starts uniform",
        make=lambda: _published("boost_cold"),
        modes=EVERY_MODE,
        partitions=True,
    ),
    "boost-gaussian": ListedPreset(
        paper=f"{BOOST}, A.5",
        line="PMW-Bypass whose answers have Gaussian noise",
        make=lambda: _published("boost_gaussian"),
        modes=GAUSSIAN_MODES,
    ),
    "boost-printed": ListedPreset(
        paper=f"{BOOST}, Alg. 1",
        line="PMW-Bypass with the constants as printed",
        make=lambda: _published("boost_printed"),
    ),
    "boost-profile": ListedPreset(
        paper=BOOST,
        line="what boost buys, charged by the loss of each cell as the default is",
        make=lambda: replace(_published("boost"), name="boost-profile", sequential=False),
        modes=EVERY_MODE,
        partitions=True,
    ),
    "pmw": ListedPreset(
        paper=f"PMW (Hardt and Rothblum, 2010), compared with in {BOOST}",
        line="private multiplicative weights without a bypass: every question is tested",
        make=lambda: _published("pmw"),
    ),
    "multi-analyst": ListedPreset(
        paper=MULTI_ANALYST,
        line="Seeded Cache and Reconstruct: the cache, reconstruction, and plain noise on the question itself",
        make=lambda: _published("multi_analyst"),
        modes=EVERY_MODE,
        policy="seeded-cache",
    ),
    "laplace": ListedPreset(
        paper="compared with in every paper",
        line="plain noise on every question, nothing remembered",
        make=lambda: Preset("laplace", (Direct(),), sequential=True),
        modes=EVERY_MODE,
    ),
    "exact-cache": ListedPreset(
        paper=f"compared with in {BOOST}",
        line="plain noise; a question that was asked before is free",
        make=lambda: Preset("exact-cache", (Exact(), Direct()), sequential=True),
        modes=EVERY_MODE,
    ),
}
"""The presets that can be named, in the order in which they are listed."""


def listed(name: str) -> ListedPreset:
    """What is listed under a name."""
    if name not in LISTED:
        raise ConfigError(f'there is no preset "{name}"\ntry: one of {", ".join(LISTED)} (bursar presets tells more)')
    return LISTED[name]


def named(name: str | None) -> Preset:
    """The preset of a name; the default where there is none."""
    return default if name is None else listed(name).make()


def under(family: Family | None, preset: Preset, domain: Domain, groups: tuple[Names, ...] = ()) -> Preset:
    """The preset for a data set: under its contract, with its partitions, and with its groups of columns."""
    if family is not None:
        return _simultaneous(family, preset)
    preset = _grouped(preset, groups) if groups else preset
    return preset if domain.partition is None else _by_partition(preset)


def _grouped(preset: Preset, groups: tuple[Names, ...]) -> Preset:
    from bursar.proposers.pmw import Pmw
    from bursar.proposers.pmw_windows import PmwWindows

    learns = Pmw | PmwWindows
    proposers = (
        proposer.grouped(groups) if isinstance(proposer, learns) else proposer for proposer in preset.proposers
    )
    return replace(preset, proposers=tuple(proposers))


def _by_partition(preset: Preset) -> Preset:
    """Only what works by partition: others may look at one not sealed yet, or tell all cells of all of them apart."""
    from bursar.proposers.incremental import Incremental
    from bursar.proposers.invest import Invest, Invested
    from bursar.proposers.pmw import Pmw
    from bursar.proposers.strategy import Strategy
    from bursar.proposers.tree import Tree

    kinds = Reconstruct | Known | Invested | Incremental | Tree | Refine | Strategy | Invest | Pmw
    return replace(
        preset, proposers=tuple(proposer for proposer in preset.proposers if not isinstance(proposer, kinds))
    )


def _simultaneous(family: Family, preset: Preset) -> Preset:
    """The preset under the simultaneous contract for a family of questions.

    Proposers that live on rows of several purchases have no place there: `Reuse` does what can be done with each one.
    """
    from bursar.papers.eigen_design.named_strategies import NamedStrategy
    from bursar.proposers.apart import Apart
    from bursar.proposers.incremental import Incremental
    from bursar.proposers.invest import Invest, Invested
    from bursar.proposers.partitions import ByPartition
    from bursar.proposers.pmw import Pmw
    from bursar.proposers.pmw_windows import PmwWindows
    from bursar.proposers.simultaneous import Estimators, OnePurchase, Reuse
    from bursar.proposers.synthetic import Synthetic
    from bursar.proposers.tree import Tree

    estimators = Estimators(family)
    kinds = Exact | Partwise | Reconstruct | Known | Invested | ByPartition | Incremental | Tree | Refine
    kinds |= Pmw | PmwWindows | Synthetic | NamedStrategy | Apart
    buying = [proposer for proposer in preset.proposers if not isinstance(proposer, kinds)]
    buying = [Invest(theta=THETA, top_up=False) if isinstance(proposer, Invest) else proposer for proposer in buying]
    proposers: tuple[Proposer, ...] = (Reuse(estimators), *(OnePurchase(proposer, estimators) for proposer in buying))
    return replace(preset, name=f"{preset.name}, simultaneous", proposers=proposers, family=family, plain=None)

"""CacheDP (Mazmudar et al., VLDB 2022) as proposers over the log: MMM, SE, PQ and RP.

As printed, but for the variance of a Laplace draw (2 b^2, Proposition 4.2 has b^2) and lines 14, 18 and 21 of Algorithm
2; every other improvement is a switch, off by default. The contract of an answer is `per-query`: noise that was seen is
used again, so a question that was chosen by what it looked like may miss its goal far more often.
"""

from __future__ import annotations

from typing import Literal

from bursar.core.noise.exact_sampler import Words, system_words
from bursar.papers.cachedp.accuracy import Analytic, MonteCarlo
from bursar.papers.cachedp.instant import InstantEstimator, Quads
from bursar.papers.cachedp.modules import Expander, Mmm, Relax
from bursar.planner.choose import Preset
from bursar.planner.offer import Proposer

Tails = Literal["monte-carlo", "analytic"]


def modules(
    *,
    branching: int = 2,
    expander: bool = True,
    proactive: bool = True,
    relax: bool = True,
    tails: Tails = "monte-carlo",
    gls: bool = False,
    rowwise: bool = False,
    quads: Quads = (),
    words: Words = system_words,
) -> tuple[Proposer, ...]:
    """The modules in the order of Algorithm 1.

    branching: children of a node of a column's tree. quads: pairs of columns that have a quad-tree, or "every" one.
    expander, proactive, relax: whether SE, PQ and RP take part. tails: how (alpha, beta) is checked; the analytic bound
    gives the same verdict every time. gls: weighted least squares in place of the plain pseudo-inverse, over all cached
    rows. rowwise: RP refines single rows, wherever they were bought. words: where simulations get their randomness.
    """
    accuracy = MonteCarlo(words=words) if tails == "monte-carlo" else Analytic()
    shared = InstantEstimator(branching=branching, quads=quads, accuracy=accuracy, gls=gls)
    proposers: list[Proposer] = [Mmm(shared, proactive=proactive)]
    if expander:
        proposers.append(Expander(shared, proactive=proactive))
    if relax:
        proposers.append(Relax(shared, rowwise=rowwise))
    return tuple(proposers)


preset = Preset("cachedp", modules(), sequential=True)
"""CacheDP as it was published, charged as in its paper: for comparison."""

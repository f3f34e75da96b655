"""What the five papers say, typed in from their texts, and where the same number comes out here: a module per paper."""

from __future__ import annotations

from benchmarks.claims.boost import BOOST
from benchmarks.claims.cachedp import CACHEDP
from benchmarks.claims.claim import PaperFigure
from benchmarks.claims.eigen_design import EIGEN_DESIGN
from benchmarks.claims.multi_analyst import MULTI_ANALYST
from benchmarks.claims.rap import RAP

FIGURES: dict[tuple[str, str], PaperFigure] = {
    (figure.paper, figure.name): figure for figure in (*CACHEDP, *BOOST, *EIGEN_DESIGN, *MULTI_ANALYST, *RAP)
}
"""Every figure and table that can be asked for."""

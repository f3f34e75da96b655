"""How wrong an estimate can be: three questions about weighted sums of discrete noise.

    tail         how likely it is that some error exceeds alpha; for one draw: single_tail
    half_widths  how far errors reach, all of them together, but for a chance of beta; for one draw: half_width
    scale_for    how much noise a draw may have to stay within alpha but for a chance of beta

`covering_half_widths` are half-widths for all sums whose weights are no larger than those given; `covered` says whether
they are within a width.

An error of exactly alpha is within alpha. Noise is whole, so such an error has a chance of its own wherever alpha is a
point of the error's lattice, and much of it where alpha is small. Whether it is one can be told where the lattice is
made of numbers that are exact as floats: whole ones, and short binary fractions (`steps`). Elsewhere, as for a weight
of 1/3 or one that least squares has rounded, an error that is alpha up to rounding counts as beyond it.

Guarantees: a probability is never below the truth and a half-width never too narrow, rounding included.

`LaplaceSums` and `GaussianSums` are very many sums of very many draws of one noise, bounded together. `GroupedRows` is
a law whose rows add up very many draws of a few noises. `near_tails` and `near_threshold` are the saddlepoint
approximation, for plans to begin with; `sampled_tail` is about the tail of very many rows, for plans to be found by.
Marginals have bounds of their own in `tails/marginals.py`.
"""

from bursar.tails.characteristic import Noises
from bursar.tails.gaussian_sums import GaussianSums
from bursar.tails.inversion import near_tails, near_threshold, pitches
from bursar.tails.laplace_sums import LaplaceSums
from bursar.tails.single_draw import half_width, pair_tail, scale_for, single_tail, steps
from bursar.tails.sums import (
    DrawTerm,
    GroupedRows,
    Terms,
    covered,
    covering_half_widths,
    half_widths,
    sampled_tail,
    tail,
)

__all__ = [
    "DrawTerm",
    "GaussianSums",
    "GroupedRows",
    "LaplaceSums",
    "Noises",
    "Terms",
    "covered",
    "covering_half_widths",
    "half_width",
    "half_widths",
    "near_tails",
    "near_threshold",
    "pair_tail",
    "pitches",
    "sampled_tail",
    "scale_for",
    "single_tail",
    "steps",
    "tail",
]

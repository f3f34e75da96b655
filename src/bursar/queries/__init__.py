"""TRUSTED. What the kernel can evaluate: integer linear queries over cells, never as rows over the full domain.

Steps -> Mask -> Product -> Stack: integer rows over numbered cells, over the joint grid of a few columns, as a
Kronecker product of masks on disjoint columns, and several maps one below the other. Transform: rounded sine
transforms of one column. Predicate: one count under a condition on more columns than a mask can have. Thresholds: at
least so many of a few columns have given values, for all values at once.
"""

from bursar.queries.codec import decode, encode
from bursar.queries.linear_map import Counts, LinearMap
from bursar.queries.mask import LARGEST_JOINT, Mask
from bursar.queries.norm import Ceiling, Hull, Norm
from bursar.queries.predicate import Predicate, Quorum, Within
from bursar.queries.product import MOST_COLUMNS, Product
from bursar.queries.stack import Stack
from bursar.queries.steps import Steps
from bursar.queries.thresholds import Thresholds
from bursar.queries.transform import Transform

__all__ = [
    "LARGEST_JOINT",
    "MOST_COLUMNS",
    "Ceiling",
    "Counts",
    "Hull",
    "LinearMap",
    "Mask",
    "Norm",
    "Predicate",
    "Product",
    "Quorum",
    "Stack",
    "Steps",
    "Thresholds",
    "Transform",
    "Within",
    "decode",
    "encode",
]

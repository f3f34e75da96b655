"""TRUSTED. What the kernel can evaluate: integer linear queries over cells, never as rows over the full domain.

Steps -> Mask -> Product -> Stack: integer rows over numbered cells, over the joint grid of a few columns, as a
Kronecker product of masks on disjoint columns, and several maps one below the other. Transform: rounded sine
transforms of one column. Predicate: one count under a condition on more columns than a mask can have. Thresholds: at
least so many of a few columns have given values, for all values at once. Distinct: people, or values of a column, each
once per group, which is no sum over cells but is measured and priced like one. PerPerson: people, by one number each.
"""

from bursar.core.extensions.distinct import Distinct
from bursar.core.extensions.hull import Ceiling, Hull
from bursar.core.extensions.per_person import PerPerson
from bursar.core.extensions.predicate import Predicate, Quorum, Within
from bursar.core.extensions.thresholds import Thresholds
from bursar.core.extensions.transform import Transform
from bursar.core.queries.linear_map import Counts, LinearMap, Norm
from bursar.core.queries.map_codec import decode, encode
from bursar.core.queries.mask import LARGEST_JOINT, Mask, Steps
from bursar.core.queries.product import MOST_COLUMNS, Product, Stack

__all__ = [
    "LARGEST_JOINT",
    "MOST_COLUMNS",
    "Ceiling",
    "Counts",
    "Distinct",
    "Hull",
    "LinearMap",
    "Mask",
    "Norm",
    "PerPerson",
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

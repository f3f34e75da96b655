"""TRUSTED. The public facts: which columns there are, which finite domain each has, who a privacy unit is.

Everything here is declared by the data owner and known to everyone; nothing is ever learnt from the rows.
"""

from bursar.core.domain.attribute import Attribute, Bins, Categories, Dates, IntegerRange, Period, Stray, Value
from bursar.core.domain.domain import Domain
from bursar.core.domain.unit import Neighbours, Unit

__all__ = [
    "Attribute",
    "Bins",
    "Categories",
    "Dates",
    "Domain",
    "IntegerRange",
    "Neighbours",
    "Period",
    "Stray",
    "Unit",
    "Value",
]

"""TRUSTED. What happened (events), what it cost (accountants), who it was learnt about (profiles)."""

from bursar.core.accounting.accountant import Accountant, Book, Mode, from_units, left_of, to_units
from bursar.core.accounting.events import (
    Allotted,
    Closed,
    Event,
    Failed,
    Measured,
    Opened,
    Paid,
    Refined,
    Sealed,
    Selected,
    Versioned,
    same_purchase,
    stands_in,
)
from bursar.core.accounting.profile import AddRemove, Footprint, Profile
from bursar.core.accounting.rows import rows_of
from bursar.core.extensions.replace_one import ReplaceOne
from bursar.core.extensions.sequential import Sequential
from bursar.core.noise.law import Noise, NoiseKind

__all__ = [
    "Accountant",
    "AddRemove",
    "Allotted",
    "Book",
    "Closed",
    "Event",
    "Failed",
    "Footprint",
    "Measured",
    "Mode",
    "Noise",
    "NoiseKind",
    "Opened",
    "Paid",
    "Profile",
    "Refined",
    "ReplaceOne",
    "Sealed",
    "Selected",
    "Sequential",
    "Versioned",
    "from_units",
    "left_of",
    "rows_of",
    "same_purchase",
    "stands_in",
    "to_units",
]

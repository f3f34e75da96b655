"""TRUSTED. What happened (events), what it cost (accountants), who it was learnt about (profiles)."""

from bursar.core.accounting.accountant import Accountant, Book, Mode
from bursar.core.accounting.events import Event, Paid, same_purchase
from bursar.core.accounting.kind import Measured, Versioned
from bursar.core.accounting.profile import AddRemove, Footprint, Profile
from bursar.core.extensions.carried import Carried
from bursar.core.extensions.discovery import Found
from bursar.core.extensions.partitions import Sealed
from bursar.core.extensions.refine import Refined
from bursar.core.extensions.replace_one import ReplaceOne
from bursar.core.extensions.select import Selected
from bursar.core.extensions.shares import Allotted
from bursar.core.extensions.sparse_vector import Closed, Failed, Opened
from bursar.core.noise.law import Noise, NoiseKind, from_units, left_of, to_units

__all__ = [
    "Accountant",
    "AddRemove",
    "Allotted",
    "Book",
    "Carried",
    "Closed",
    "Event",
    "Failed",
    "Footprint",
    "Found",
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
    "Versioned",
    "from_units",
    "left_of",
    "same_purchase",
    "to_units",
]

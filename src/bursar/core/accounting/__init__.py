"""TRUSTED. What happened (events), what it cost (accountants), who it was learnt about (profiles)."""

from bursar.core.accounting.accountant import Accountant, Book, Mode
from bursar.core.accounting.events import Event, Paid, same_purchase, stands_in
from bursar.core.accounting.kind import Measured, Versioned
from bursar.core.accounting.profile import AddRemove, Footprint, Profile
from bursar.core.extensions.carried import Carried
from bursar.core.extensions.checkpoint import Checkpointed
from bursar.core.extensions.discovery import Found
from bursar.core.extensions.open_keys import Keyed
from bursar.core.extensions.partitions import Sealed
from bursar.core.extensions.refine import Refined, rows_of
from bursar.core.extensions.relations import Added
from bursar.core.extensions.replace_one import ReplaceOne
from bursar.core.extensions.select import Selected
from bursar.core.extensions.sequential import Sequential
from bursar.core.extensions.shares import Allotted
from bursar.core.extensions.sparse_vector import Closed, Failed, Opened
from bursar.core.noise.law import Noise, NoiseKind, from_units, left_of, to_units

__all__ = [
    "Accountant",
    "AddRemove",
    "Added",
    "Allotted",
    "Book",
    "Carried",
    "Checkpointed",
    "Closed",
    "Event",
    "Failed",
    "Footprint",
    "Found",
    "Keyed",
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

"""Events: what happened, without what it cost. The list of kinds is closed: a kind that is not on it is refused."""

from __future__ import annotations

from collections.abc import Mapping

from bursar.core.accounting.kind import Fields, Measured, PaidEvent, Strategies, Versioned
from bursar.core.extensions.carried import Carried
from bursar.core.extensions.checkpoint import Checkpointed
from bursar.core.extensions.discovery import Found
from bursar.core.extensions.open_keys import Keyed
from bursar.core.extensions.partitions import Sealed
from bursar.core.extensions.refine import Refined
from bursar.core.extensions.relations import Added
from bursar.core.extensions.select import Selected
from bursar.core.extensions.shares import Allotted
from bursar.core.extensions.sparse_vector import Closed, Failed, Opened
from bursar.errors import LedgerError

Paid = Measured | Refined | Opened | Selected | Found
"""What costs something."""

Event = Paid | Carried | Versioned | Added | Allotted | Sealed | Failed | Closed | Checkpointed | Keyed

KINDS: dict[str, type[Event]] = {
    **{kind.kind: kind for kind in (Measured, Refined, Opened, Selected, Found, Carried, Versioned)},
    **{kind.kind: kind for kind in (Added, Allotted, Sealed, Failed, Closed, Checkpointed, Keyed)},
    Selected.JOINT: Selected,
}
"""All kinds of events, by the words for them in the log."""


def read_event(fields: Mapping[str, object], strategies: Strategies) -> Event:
    """The event whose fields these are; LedgerError, or another error of Python, where there is no such event."""
    stored = Fields(fields, strategies)
    if stored.kind not in KINDS:
        raise LedgerError("an event of an unknown kind: this ledger was written by a newer release")
    event = KINDS[stored.kind].read(stored)
    stored.end()
    return event


def same_purchase(planned: Event, event: Event) -> bool:
    """Whether two events ask for the same rows with the same noise, of the same version.

    Edge cases: what costs nothing is no purchase.
    """
    return isinstance(planned, PaidEvent) and isinstance(event, PaidEvent) and planned.purchase == event.purchase

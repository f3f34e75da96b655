"""The spending at a glance: by columns, by what was bought and who proposed it, by analyst; whose budget is used."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any, Protocol

from bursar.domain import Domain
from bursar.kernel.accounting import (
    Allotted,
    Book,
    Measured,
    Mode,
    Opened,
    Paid,
    Refined,
    Sealed,
    Selected,
    Versioned,
    from_units,
)
from bursar.kernel.accounts import Charge
from bursar.kernel.ledger import Record
from bursar.proposers.direct import parts_of
from bursar.spending.people import Used, used_by_people
from bursar.spending.proposers import FOR_EVERYONE, proposers_of
from bursar.spending.purchases import Purchase, purchases_of, reader
from bursar.spending.savings import Progress, Saved, saved_of
from bursar.status import OWNER, Money
from bursar.workload import Level

WIDTH = 24
"""Of a bar, in characters."""


class Books(Money, Protocol):
    """What is asked of the kernel."""

    def empty_book(self) -> Book: ...


@dataclass(frozen=True, kw_only=True)
class Portion:
    """A part of what was spent."""

    name: str
    charge: float
    purchases: int


@dataclass(frozen=True, kw_only=True)
class Spending:
    """What was spent on what. For an analyst: the own questions only, and what the own account paid for them.

    Portions are what each purchase added to the account when it was made, so they add up to what is spent.
    """

    unit: str  # "epsilon" or "rho"
    analyst: str | None  # whose questions; None: everybody's
    paid: float
    by_columns: tuple[Portion, ...]
    by_way: tuple[Portion, ...]
    by_proposer: tuple[Portion, ...]  # under the names that EXPLAIN has for them
    by_analyst: tuple[Portion, ...]  # for the data owner
    people: tuple[Used, ...]
    saved: Saved

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        if not self.by_columns:
            return "nothing was bought yet" + ("" if self.analyst is None else f" by {self.analyst}")
        parts = {
            "columns": self.by_columns,
            "bought": self.by_way,
            "from": self.by_proposer,
            "analyst": self.by_analyst,
        }
        lines = [line for title, portions in parts.items() for line in self._portions(title, portions)]
        return "\n".join([*lines, *self._people(), *self._saved()])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def _portions(self, title: str, portions: Sequence[Portion]) -> list[str]:
        wide = max((len(portion.name) for portion in portions), default=0)
        lines = []
        for place, portion in enumerate(portions):
            part = portion.charge / self.paid if self.paid else 0.0
            times = f"{portion.purchases} purchase{'s' if portion.purchases != 1 else ''}"
            bar = "=" * round(WIDTH * part)
            head = title if place == 0 else ""
            lines.append(f"{head:<8}{portion.name:<{wide}}  {portion.charge:>10.6g}  {bar:<{WIDTH}}  {times}")
        return lines

    def _people(self) -> list[str]:
        lines = []
        for place, used in enumerate(self.people):
            if used.alike:
                told = f"{used.top[0][1]:.6g} whatever the value"
            else:
                rest = f"; others at most {used.rest:.6g}" if used.values > len(used.top) else ""
                told = ", ".join(f"{label} {amount:.6g}" for label, amount in used.top) + rest
            lines.append(f"{'people' if place == 0 else '':<8}by {used.column}: {told}")
        why = f"{'':<8}(the most that was learnt about anyone with that value; never more than what is spent)"
        return [*lines, why] if lines else []

    def _saved(self) -> list[str]:
        saved = self.saved
        if saved.questions == 0:
            return []
        asked = f"{saved.questions} question{'s' if saved.questions != 1 else ''}"
        told = [
            f"saved   {asked} cost {self.unit} {saved.paid:.6g}; each measured by itself, as exactly on average, they",
            f"        would have cost {saved.direct:.6g}. Free answers are not in the log, and not counted here.",
        ]
        if saved.left_out:
            told.append(f"        ({saved.left_out} more purchases could not be compared)")
        return told


def spending_of(
    books: Books,
    analyst: str,
    *,
    domain: Domain,
    table: str,
    levels: tuple[Level, ...] = (),
    own_rows: bool = False,
    progress: Progress = lambda done, of: None,
) -> Spending:
    """The overview that the analyst may see: of the own purchases; for the data owner, of all.

    Guarantees: for an analyst it depends on others' records in one way only: they made own answers more exact, as the
    answers themselves have shown. `own_rows` says that answers are made from own measurements alone.
    """
    everything = analyst == OWNER
    whole = books.history()
    own = [entry for entry in whole if everything or entry[0].analyst == analyst or _public(entry[0])]
    purchases = purchases_of(own, reader(domain, table, levels))
    mode: Mode = books.budget.mode
    named = proposers_of(purchases, [record for record, _ in own], domain=domain, mode=mode)
    pays = _total if everything else _account
    book = books.empty_book()
    for record, _ in own:
        book.add(record.event, record.position)
    seen = own if own_rows else whole
    return Spending(
        unit=mode.unit,
        analyst=None if everything else analyst,
        paid=from_units(sum(pays(charge) for _, charge in own)),
        by_columns=_portions(own, lambda record: _columns(record, domain), pays),
        by_way=_ways(purchases, own, pays),
        by_proposer=_portions(own, lambda record: named[record.position], pays),
        by_analyst=_portions(own, lambda record: record.analyst, pays) if everything else (),
        people=used_by_people(book, domain),
        saved=saved_of(
            purchases,
            [record for record, _ in seen],
            domain=domain,
            mode=mode,
            empty_book=books.empty_book,
            pays=pays,
            progress=progress,
        ),
    )


def _public(record: Record) -> bool:
    """Declarations of the data owner, which everybody knows."""
    return isinstance(record.event, Versioned | Allotted | Sealed)


def _total(charge: Charge) -> int:
    return charge.total


def _account(charge: Charge) -> int:
    return charge.account


def _portions(
    entries: Iterable[tuple[Record, Charge]], name: Callable[[Record], str], pays: Callable[[Charge], int]
) -> tuple[Portion, ...]:
    """Sums by name, the largest first."""
    sums: dict[str, list[int]] = defaultdict(list)
    for record, charge in entries:
        if isinstance(record.event, Paid):  # nothing else costs anything
            sums[name(record)].append(pays(charge))
    made = [Portion(name=key, charge=from_units(sum(paid)), purchases=len(paid)) for key, paid in sums.items()]
    return tuple(sorted(made, key=lambda portion: -portion.charge))


def _columns(record: Record, domain: Domain) -> str:
    event = record.event
    match event:
        case Opened(scope=looked_at) | Selected(candidates=looked_at) | Measured(strategy=looked_at):
            pass
        case _:
            assert isinstance(event, Refined)
            looked_at = event.strategy
    return ", ".join(domain.ordered(looked_at.attrs)) or "(all rows)"


def _ways(
    purchases: Iterable[Purchase], entries: Iterable[tuple[Record, Charge]], pays: Callable[[Charge], int]
) -> tuple[Portion, ...]:
    asked = {record.position: purchase for purchase in purchases for record in purchase.records}

    def way(record: Record) -> str:
        request = asked[record.position].request
        if isinstance(record.event, Refined):
            return "earlier rows made finer"
        if isinstance(record.event, Opened):
            return "tests of what was learnt"
        if isinstance(record.event, Selected):
            return "choices of what to measure"
        if request is None:
            return FOR_EVERYONE
        assert isinstance(record.event, Measured)
        as_asked = record.event.strategy.digest in {part.digest for part in parts_of(request.workload.map)}
        return "just what was asked" if as_asked else "rows that answer more"

    return _portions(entries, way, pays)

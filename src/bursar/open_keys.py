"""Open columns as one analyst meets them: which texts are told apart, and looking for others before a question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING

from bursar.compile.open_columns import KeyedColumn, Keys, Rarity, grouped_by, open_columns
from bursar.config import Config
from bursar.core.accounting import Found, from_units
from bursar.core.kernel import Kernel
from bursar.core.ledger import Ledger
from bursar.errors import AnalystError, BudgetError, BursarError, QueryError
from bursar.planner.goals import Wanted
from bursar.planner.offer import Offer
from bursar.planner.request import PlanningRequest
from bursar.report.status import OWNER
from bursar.sql import Query

if TYPE_CHECKING:
    from bursar.planner.discovery import Discovery

MANY_TEXTS = 100
"""As if so many had been found a question is priced before they are looked for, as EXPLAIN says."""

NOTHING_TO_FIND = "DISCOVERY looks for texts of an open column that is grouped by, and this groups by none"


class OpenKeys:
    """The texts of a table's open columns, for one analyst."""

    def __init__(self, config: Config, ledger: Ledger, kernel: Kernel, analyst: str) -> None:
        self._config, self._ledger, self._kernel, self._analyst = config, ledger, kernel, analyst
        self._open = {column.name: column.capacity for column in open_columns(config.domain)}
        self._found = Finds()

    def of(self, analyst: str) -> OpenKeys:
        """The same for another analyst."""
        other = copy(self)
        other._analyst = analyst
        return other

    def keys(self) -> Keys:
        """The keys that the analyst may tell apart, by column.

        These are the data owner's and the analyst's own; all of them for the data owner, and where the log is for all.
        """
        analysts, finds = self._config.analysts, self._finds()
        everything = self._analyst == OWNER or analysts.log == "all"
        return {
            name: KeyedColumn(
                shown=tuple(
                    (cell, key.text)
                    for cell, key in enumerate(keys)
                    if everything or key.analyst in (OWNER, self._analyst)
                ),
                taken=tuple(key.text for key in keys),
                rarity=finds.now.get(name) or finds.before.get(name),
                named=sum(key.analyst == self._analyst for key in keys),
                most=None if self._analyst == OWNER else analysts.names_of(self._open[name]),
            )
            for name, keys in self._kernel.known_keys().items()
        }

    def with_searches(self, query: Query, request: PlanningRequest) -> PlanningRequest:
        """A request with what is to be looked for first, where the question says so; else with a word on what could be.

        Where texts as rare were looked for in the present version of the data, nobody looks again: who asks the same
        question once more pays for no second search.
        """
        columns = grouped_by(query, self._config.domain)
        if not columns:
            if query.search is not None:
                raise QueryError(NOTHING_TO_FIND, text=query.text, position=query.search.position)
            return request
        searched = self._finds().now
        if query.search is None:
            told = [self._offered(name) for name in columns if name not in searched]
            workload = replace(request.workload, remarks=(*request.workload.remarks, *told))
            return replace(request, workload=workload)
        plans = [self._plan(name, query.search.spend, len(columns)) for name in columns]
        due = [plan for plan in plans if plan.column not in searched or searched[plan.column].likely > plan.likely]
        return replace(request, searches=tuple(due))

    def as_if_found(self, searches: Sequence[Discovery]) -> Keys:
        """The keys as they could be after searches: with more texts than are likely to be found."""
        keys = dict(self.keys())
        for column in (search.column for search in searches):
            keyed = keys[column]
            free = range(len(keyed.taken), min(self._open[column], len(keyed.taken) + MANY_TEXTS))
            more = tuple((cell, f"\ue000{cell}") for cell in free)
            taken = (*keyed.taken, *(text for _, text in more))
            keys[column] = replace(keyed, shown=(*keyed.shown, *more), taken=taken)
        return keys

    def search(self, request: PlanningRequest, offer: Offer) -> tuple[Discovery, ...]:
        """Look for texts first, if what this offer would cost can be paid for besides."""
        searches = request.searches
        cost = sum(search.rho for search in searches) + from_units(offer.price.at_most)
        most, left = request.asked.goal.most, from_units(self._kernel.account(self._analyst).left)
        if cost > (cap := left if most is None else min(left, most)):
            limit = "is left" if cap == left else "is the most you would pay"
            unit = self._config.budget.mode.unit
            raise BudgetError(asked=cost, left=cap, unit=unit, limit=f"{limit}, for the search and the answer")
        return tuple(search.run() for search in searches)

    def _plan(self, column: str, spend: float | None = None, searches: int = 1) -> Discovery:
        """One of several searches that go before a question; AnalystError where only the data owner may look."""
        from bursar.planner.discovery import plan, usual

        if self._analyst != OWNER and self._config.analysts.discover == "owner":
            raise AnalystError(
                "here only the data owner looks for texts of open columns\ntry: name the texts that you want to be "
                f"told apart, in WHERE; the data owner has: bursar discover {column} --spend {usual(self._kernel):.3g}"
            )
        return plan(self._kernel, self._config.unit, column, spend=spend, searches=searches, analyst=self._analyst)

    def _offered(self, column: str) -> str:
        """How texts of a column could be looked for, and what that would cost; or why they cannot."""
        try:
            return self._plan(column).offer
        except BursarError as refusal:
            return str(refusal).replace("\ntry:", ":")

    def _finds(self) -> Finds:
        """What searches among all rows found; read anew after every search and version."""
        state = self._kernel.delta_spent(), self._kernel.version()
        if self._found.state != state:
            tables = self._kernel.tables()
            events = [record.event for record in self._ledger.records()]
            searches = [event for event in events if isinstance(event, Found) and event.scope is None]
            mine = [event for event in searches if tables[event.version] == self._kernel.table]
            finds = [(event.version, event.column, Rarity.of(event)) for event in mine]
            present = [(column, rarity) for version, column, rarity in finds if version == state[1]]
            self._found = Finds(
                state,
                now={column: min(rarity for name, rarity in present if name == column) for column, _ in present},
                before={column: rarity for _, column, rarity in finds},
            )
        return self._found


class Finds:
    """How rare texts are that were found, by column: at best in the present version of the data, and by the last search
    in any."""

    def __init__(
        self,
        state: tuple[int, int] = (0, 0),
        now: Mapping[str, Rarity] | None = None,
        before: Mapping[str, Rarity] | None = None,
    ) -> None:
        """`state` is the delta that was used up, and the version."""
        self.state, self.now, self.before = state, now or {}, before or {}


def left_after(options: Wanted, searches: Sequence[Discovery]) -> Wanted:
    """The same goal with what searches have left of the most that somebody would pay."""
    spent = sum(search.rho for search in searches)
    return options if options.max_cost is None else replace(options, max_cost=options.max_cost - spent)


@contextmanager
def paid_before(searches: Sequence[Discovery]) -> Iterator[None]:
    """A question that cannot be paid for says what its searches did cost: they found more than was planned for."""
    try:
        yield
    except BudgetError as refusal:
        unit, rho = refusal.unit, sum(search.rho for search in searches)
        told = f"looking for texts has cost {unit} {rho:.6g}, and what was found is told apart from now on"
        raise replace(refusal, spent=told) from None

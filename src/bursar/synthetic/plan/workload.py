"""What is asked of a synthetic table, and the marginals that it is to be right about, from that and from the log."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from hashlib import blake2b
from itertools import combinations

from bursar.compile.partwise import PartwiseMap
from bursar.core.accounting import Measured, Paid, Versioned
from bursar.core.domain import Domain
from bursar.core.ledger import Record, chain
from bursar.core.queries import LinearMap, Stack
from bursar.core.source.source import MOST_ROWS
from bursar.errors import QueryError
from bursar.goal import LARGEST_AMOUNT, Goal, GoalKind
from bursar.synthetic.marginals.estimates import Consistent, DerivedMarginal, derive_marginals
from bursar.synthetic.marginals.evidence import LogEvidence, evidence_in
from bursar.synthetic.plan import history as past
from bursar.synthetic.rap.threshold_workload import MOST_TOGETHER
from bursar.views.measurements import Measurements, Reconstructions

Names = tuple[str, ...]
Read = Callable[[str], Sequence[Names]]
"""From the text of a question to the column sets that it is about; nothing where it is no question."""

PROPOSER = "synthetic table"
"""Who buys for synthetic tables, in the log."""

PREFIX = "synth "
"""How the purposes of synthetic tables begin; they are not part of any history of questions."""

NOTHING = (
    "the log says nothing yet that a table could be made of, and nothing may be spent\n"
    "try: --spend 0.1 (the data owner may), or ask some questions first: SELECT age, COUNT(*) FROM ... GROUP BY age"
)
NO_HISTORY = "nothing was asked yet that a workload could be drawn from\ntry: --ways 2 instead of --history"

MOST_SETS = 5000
"""Most column sets of a table."""


class Method(Enum):
    """How a table is made: from measured marginals, by RAP's adaptive rounds, or from marginals with rounds after."""

    MARGINALS = "marginals"
    RAP = "rap"
    BOTH = "both"


MOST_SETTING = 100_000
"""Most rounds, picks and relaxed rows of RAP: its memory grows with them."""


@dataclass(frozen=True, kw_only=True)
class TableRequest:
    """A table to be made: which marginals it is to be right about, and what may be spent.

    At most one of the first four is given.
    """

    ways: int | None = None
    marginals: str | None = None
    workload: tuple[Names, ...] | None = None
    history: bool = False
    augment: float = 0.0
    rows: int | None = None  # as many as the data have, or seem to have, unless named
    spend: float | None = None  # nothing, unless named
    method: str = "auto"
    rounds: int | None = None  # T of RAP; a rule that looks at no data sets it unless named
    picks: int | None = None  # K of RAP
    relaxed: int | None = None  # n' of RAP: the relaxed rows that are fitted
    agree: int | None = None  # r of RAP's thresholds: how many columns of a set must agree; all unless named
    search: bool = False  # whether T and K of RAP are searched for, every trial paid
    unit: str  # of the budget
    analyst: str
    wait: bool = True  # whether to stand in line until the turn comes
    ticket: int | None = None  # the place in line, from a call that would not wait

    def __post_init__(self) -> None:
        given = [self.ways is not None, self.marginals is not None, self.workload is not None, self.history]
        if sum(given) > 1:
            raise QueryError("give one of ways, marginals, workload and history, not several")
        if self.augment and not self.history:
            raise QueryError("augment adds to a history\ntry: --history --augment 0.1")
        methods = [method.value for method in Method]
        if self.spend is not None and self.method not in ("auto", *methods):
            raise QueryError(f"there is no method {self.method!r}\ntry: auto, {', '.join(methods)}")
        self._check_settings()

    def _check_settings(self) -> None:
        """Those of RAP."""
        settings = (self.rounds, self.picks, self.relaxed)
        if not self.search and all(number is None for number in (*settings, self.agree)):
            return
        if self.method != Method.RAP.value or self.spend is None:
            raise QueryError(
                "rounds, picks, relaxed rows, agree and search are settings of RAP\ntry: --method rap --spend 0.1"
            )
        if (self.rounds is None) != (self.picks is None):
            raise QueryError("rounds and picks go together\ntry: --rounds 16 --picks 4")
        if self.search and self.rounds is not None:
            raise QueryError("a search finds rounds and picks by itself\ntry: --search without --rounds and --picks")
        if any(number is not None and not 1 <= number <= MOST_SETTING for number in settings):
            raise QueryError(f"rounds, picks and relaxed rows lie between 1 and {MOST_SETTING:,}")
        if self.agree is not None and not 1 <= self.agree <= MOST_TOGETHER:
            raise QueryError(f"of a set of columns, 1 to {MOST_TOGETHER} can be asked to agree")

    @property
    def goal(self) -> Goal:
        """The least error for what may be spent."""
        amount = 1 / LARGEST_AMOUNT if self.spend is None else self.spend
        return Goal(kind=GoalKind.SPEND, amount=amount, unit=self.unit)

    @property
    def text(self) -> str:
        """As the log will have it: the same request has the same text. A free table leaves nothing in the log."""
        named = (("T", self.rounds), ("K", self.picks), ("n'", self.relaxed), ("r", self.agree))
        settings = "".join(f", {name} {number}" for name, number in named if number is not None)
        settings += ", search" if self.search else ""
        about = f"{PREFIX}{self.about}, {self.method}, {self.unit}"
        return "" if self.spend is None else f"{about} {self.spend:.9g}{settings}"

    @property
    def question(self) -> str:
        """What the log calls it."""
        return chain.question(self.text)

    @property
    def about(self) -> str:
        """Which marginals, in words."""
        if self.spend is None and not (self.ways or self.marginals or self.workload or self.history):
            return "of what was measured"
        if self.history:
            return f"history, augment {self.augment:g}"
        if self.marginals is not None:
            return f"marginals {self.marginals}"
        if self.workload is not None:
            return f"workload {sets_digest(self.workload)}"
        return f"ways {2 if self.ways is None else self.ways}"


@dataclass(frozen=True, kw_only=True, eq=False)
class EvidentMarginals:
    """What the log of one version says about marginals, whole ones and such as follow from other rows."""

    domain: Domain
    records: tuple[Record, ...]
    clean: Consistent
    evidence: tuple[LogEvidence, ...]
    remade: tuple[DerivedMarginal, ...]

    @staticmethod
    def of(records: Sequence[Record], domain: Domain, *, size: int | None) -> EvidentMarginals:
        """Edge cases: records of earlier versions are left out, for they are about other data."""
        of_version = tuple(current(records))
        measurements = Measurements(domain)
        measurements.advance(of_version)
        evidence = tuple(evidence_in(of_version, domain))
        clean = Consistent(domain, evidence, size=size)
        derived = tuple(derive_marginals(domain, measurements, Reconstructions(domain, measurements), clean))
        return EvidentMarginals(domain=domain, records=of_version, clean=clean, evidence=evidence, remade=derived)

    @property
    def sets(self) -> list[Names]:
        """Column sets that something is known about."""
        measured = [evidence.source.columns for evidence in self.evidence] + [each.columns for each in self.remade]
        return [columns for columns in dict.fromkeys(measured) if columns]


def current(records: Sequence[Record]) -> list[Record]:
    """The records from the last version of the data on."""
    places = [place for place, record in enumerate(records) if isinstance(record.event, Versioned)]
    return list(records[places[-1] :]) if places else list(records)


def asked_before(records: Sequence[Record], texts: Mapping[str, str], read: Read, domain: Domain) -> list[Names]:
    """The column sets of all paid questions in their order; a question of several records counts once.

    Free answers are not in the log, so they count for nothing. Of what was not asked in SQL, or whose text was erased,
    the columns that were measured count. Sets too large to learn are left out.
    """
    column_sets: list[Names] = []
    before: tuple[str, str] | None = None
    for record in records:
        event, text = record.event, texts.get(record.question, "")
        if not isinstance(event, Paid) or record.proposer == PROPOSER or text.startswith(PREFIX):
            continue
        if (record.analyst, record.question) != before:
            before = (record.analyst, record.question)
            named = read(text) if text else ()
            for columns in named or (sets_in(event.strategy) if isinstance(event, Measured) else ()):
                try:
                    column_sets += fitting_sets(domain, [columns])
                except QueryError:
                    continue
    return column_sets


@dataclass(frozen=True, kw_only=True)
class MarginalWorkload:
    """The sets of a table, what each counts, and later questions to judge it by."""

    sets: tuple[Names, ...]
    weights: Mapping[Names, float] | None = None
    future: tuple[Names, ...] | None = None


def workload_of(
    request: TableRequest,
    evident: EvidentMarginals,
    texts: Mapping[str, str],
    read: Read,
    *,
    analyst: str | None,
) -> MarginalWorkload:
    """The column sets that are asked for: all of some size, named ones, those of questions, or of the history.

    The history is that of one analyst, who sees no question of others; None, the data owner, sees all of them.

    Edge cases: where none are named, pairs if something may be spent, and otherwise whatever the log knows.
    """
    domain = evident.domain
    if request.history:
        seen = [record for record in evident.records if analyst in (None, record.analyst)]
        history = asked_before(seen, texts, read, domain)
        if not history:
            raise QueryError(NO_HISTORY)
        halves = past.split(history)
        weights = past.augmented(past.weights(halves.past), _varying(domain), request.augment)
        weights = {domain.ordered(columns): weight for columns, weight in weights.items()}
        fitting = fitting_sets(domain, weights)
        weights = {columns: weights[columns] for columns in fitting}
        return MarginalWorkload(sets=fitting, weights=weights, future=halves.future)
    if request.marginals is not None:
        return MarginalWorkload(sets=named_sets(domain, request.marginals))
    if request.workload is not None:
        return MarginalWorkload(sets=fitting_sets(domain, request.workload))
    if request.ways is None and request.spend is None:
        if not evident.sets:
            raise QueryError(NOTHING)
        return MarginalWorkload(sets=fitting_sets(domain, evident.sets))
    return MarginalWorkload(sets=sets_of_size(domain, 2 if request.ways is None else request.ways))


def sets_of_size(domain: Domain, together: int) -> tuple[Names, ...]:
    """All sets of `together` columns that have more than one value and not too many joint cells.

    Edge cases: with fewer such columns than that, all of them are one set.
    """
    varying = _varying(domain)
    if not 1 <= together <= MOST_TOGETHER:
        raise QueryError(f"--ways takes a number from 1 to {MOST_TOGETHER}, not {together}")
    if not varying:
        raise QueryError("every column has one value only, so there is nothing to learn about them")
    together = min(together, len(varying))
    if (count := math.comb(len(varying), together)) > MOST_SETS:
        raise QueryError(
            f"{len(varying)} columns have {count:,} sets of {together}; {MOST_SETS:,} are possible\n"
            'try: --ways 2, or name the sets that matter: --marginals "age,sex; age,region"'
        )
    return fitting_sets(domain, combinations(varying, together))


def named_sets(domain: Domain, text: str) -> tuple[Names, ...]:
    """The sets of a list such as "age,sex; age,region"."""
    listed = [tuple(name.strip() for name in part.split(",")) for part in text.split(";") if part.strip()]
    for columns in listed:
        for name in columns:
            if name not in domain:
                raise QueryError(
                    f"there is no column {name!r}; the columns are: {', '.join(domain.names)}\n"
                    'try: commas between columns and semicolons between sets: "age,sex; age,region"'
                )
        if domain.cells(columns) > MOST_ROWS or len(set(columns)) > MOST_TOGETHER:
            raise QueryError(
                f"{', '.join(columns)} cannot be learnt together: a set has at most {MOST_TOGETHER} columns and "
                f"{MOST_ROWS:,} joint cells"
            )
    return fitting_sets(domain, listed)


def sets_in(queries: LinearMap) -> list[Names]:
    """The columns that a question looks at together, each set once; none for a count of everything."""
    parts: Sequence[LinearMap] = queries.parts if isinstance(queries, Stack | PartwiseMap) else (queries,)
    return [columns for columns in dict.fromkeys(tuple(sorted(part.attrs)) for part in parts) if columns]


def fitting_sets(domain: Domain, sets: Iterable[Sequence[str]]) -> tuple[Names, ...]:
    """The sets in the order of the domain, each once, without columns of one value; refused if nothing is left."""
    varying = ([name for name in columns if domain[name].size > 1] for columns in sets)
    ordered = dict.fromkeys(domain.ordered(columns) for columns in varying if columns)
    possible = tuple(names for names in ordered if len(names) <= MOST_TOGETHER and domain.cells(names) <= MOST_ROWS)
    if not possible:
        raise QueryError(
            f"no set of columns is left to learn about: a set has at most {MOST_TOGETHER} columns, {MOST_ROWS:,} joint "
            "cells, and a column with more than one value"
        )
    return possible


def sets_digest(sets: Iterable[Names]) -> str:
    """A short name for a list of sets."""
    text = ";".join(",".join(columns) for columns in sets)
    return text if len(text) <= 120 else f"#{blake2b(text.encode(), digest_size=8).hexdigest()}"


def _varying(domain: Domain) -> list[str]:
    return [attribute.name for attribute in domain.attributes if attribute.size > 1]

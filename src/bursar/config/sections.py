"""The sections of a config that are not columns: the domain, [partition], [privacy], [budget], [goal], [histograms]."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, timedelta
from enum import Enum

from bursar.analysts.shares import AnalystSettings
from bursar.config.columns import column
from bursar.config.section import HOMES, KEYS, Section, nearest, shown
from bursar.core.budget import LARGEST_BUDGET, Budget
from bursar.core.domain import Attribute, Dates, Domain, IntegerRange, Neighbours, Unit
from bursar.core.extensions.renyi import LARGEST_ORDER, SMALLEST_ORDER
from bursar.core.queries.product import MOST_COLUMNS
from bursar.errors import ConfigError, QueryError
from bursar.estimation.simultaneous import LARGEST_FAMILY, Family
from bursar.goal import Contract, Goal, GoalKind, Horizon
from bursar.lazy_dataclass import dataclass
from bursar.views.histograms import MOST_BINS

PARTITION_EXAMPLE = '[partition]\ncolumn = "joined"\nseal = "calendar"'
LONGEST_GRACE = 3650


class Seal(Enum):
    """What decides that a partition is complete; never a row that appeared."""

    ALL = "all"  # everything is, when the ledger is created
    COMMAND = "command"  # the data owner says so
    CALENDAR = "calendar"  # its last day, and some days of grace, are over


@dataclass(frozen=True, kw_only=True)
class Sealing:
    """When partitions are sealed."""

    seal: Seal = Seal.ALL
    grace_days: int = 0

    @property
    def growing(self) -> bool:
        """Whether rows can still come in."""
        return self.seal is not Seal.ALL

    def due(self, column: Attribute, today: date) -> int:
        """How many partitions, from the first one on, are sealed by the calendar on a day; 0 without a calendar."""
        if self.seal is not Seal.CALENDAR or not isinstance(column, Dates):
            return 0
        over = today - timedelta(days=self.grace_days)
        return min(max(column.ordinal(over) - column.ordinal(column.first), 0), column.declared)


def partition(top: Section) -> tuple[str | None, Sealing]:
    """The name of the column, which may not be declared, and when its values are sealed."""
    if "partition" not in top:
        return None, Sealing()
    section = top.section("partition", PARTITION_EXAMPLE)
    section.only(KEYS["partition"], HOMES)
    name = section.text("column", 'column = "joined"')
    seal = Seal(section.word("seal", (kind.value for kind in Seal), Seal.ALL.value))
    grace = 0
    if "grace_days" in section:
        hint = 'grace_days = 2, with seal = "calendar"'
        grace = section.integer("grace_days", hint, least=0, most=LONGEST_GRACE)
        if seal is not Seal.CALENDAR:
            section.refuse("grace_days", reason="partition.grace_days needs a calendar to wait for", hint=hint)
    return name, Sealing(seal=seal, grace_days=grace)


def check_partition(top: Section, columns: dict[str, Attribute]) -> None:
    """Refuse a column that is not declared, or has no calendar where one is needed."""
    name, sealing = partition(top)
    if name is None:
        return
    section = top.section("partition")
    if name not in columns:
        near = nearest(name, columns)
        hint = f'did you mean "{near}"?' if near else "name one of the [columns.*]"
        section.refuse("column", reason=f"partition.column is not declared: {shown(name)}", hint=hint)
    if sealing.seal is Seal.CALENDAR and not isinstance(columns[name], Dates):
        reason = f'seal = "calendar" needs a column of dates, and {shown(name)} is none'
        section.refuse("seal", reason=reason, hint='seal = "command"')


def cell_named(column: Attribute, text: str) -> int:
    """The number of the partition that a value names: a listed value, a number, or any day of it."""
    index: int | None = None
    try:
        if isinstance(column, Dates):
            index = column.ordinal(date.fromisoformat(text)) - column.ordinal(column.first)
        elif isinstance(column, IntegerRange):
            index = int(text) - column.lower
        else:
            index = [str(column.label(cell)) for cell in range(column.declared)].index(text)
    except ValueError:
        pass
    if index is None or not 0 <= index < column.declared:
        first, last = column.label(0), column.label(column.declared - 1)
        raise QueryError(f"{text!r} is no partition of {column.name}; they run from {first} to {last}")
    return index


def check_together(top: Section, sealing: Sealing, family: Family | None, sharing: AnalystSettings) -> None:
    """Refuse what data that grow do not go together with: what is measured for all of them at once."""
    if not sealing.growing:
        return
    if family is not None:
        reason = (
            'goal.contract = "simultaneous" covers data that are all there at the start, and [partition] lets them grow'
        )
        top.section("goal").refuse("contract", reason=reason, hint='contract = "per-query"')
    if sharing.seed is not None:
        reason = "a seed is measured once for all data, and with [partition] there is more to come"
        top.section("analysts").refuse("policy", reason=reason, hint='policy = "shared" or "independent"')


LARGEST_PACE = 3600.0


def domain(top: Section) -> Domain:
    """All [columns.*] in their order, and the partition column if one is named."""
    hint = '[columns.sex]\nvalues = ["F", "M"]'
    columns = top.section("columns", hint)
    if not columns.entries:
        columns.refuse(reason="there is no column", hint=hint)
    names: dict[str, str] = {}
    for name in columns.entries:
        if (twin := names.setdefault(name.casefold(), name)) != name:
            reason = f"{columns.label(name)} and {columns.label(twin)} are one column: SQL ignores the case of names"
            columns.refuse(name, reason=reason)
    attributes = tuple(column(columns.section(name, hint)) for name in columns.entries)
    check_partition(top, {attribute.name: attribute for attribute in attributes})
    with top.located("partition"):
        return Domain(attributes, partition(top)[0])


def unit(top: Section, *, public_size: int | None, max_rows: int) -> Unit:
    """[privacy]: whose privacy is protected, and against which neighbours."""
    hint = 'unit = "row" if each person has one row, or unit = { column = "person_id" }'
    section = top.section("privacy", f"[privacy]\n{hint}")
    section.only(KEYS["privacy"], HOMES)
    name = _unit_column(section, hint)
    rows = 1
    if "max_contributions" in section:
        rows = section.integer("max_contributions", "max_contributions = 1", least=1, most=max_rows)
    word = section.word("neighbours", (kind.value for kind in Neighbours), Neighbours.ADD_REMOVE.value)
    if word == Neighbours.REPLACE_ONE.value and public_size is None:
        reason = 'neighbours = "replace-one" treats the number of rows as public, and the config does not declare it'
        section.refuse("neighbours", reason=reason, hint='public_size under [source], or neighbours = "add-remove"')
    with section.located("max_contributions"):
        return Unit(column=name, max_contributions=rows, neighbours=Neighbours(word))


def _unit_column(section: Section, hint: str) -> str | None:
    if isinstance(section.required("unit", hint), dict):
        inner = section.section("unit")
        inner.only(("column",))
        return inner.text("column", hint)
    name = section.text("unit", hint)
    if name != "row" and name.casefold() in {"row", "rows"}:
        reason = f"privacy.unit: it is not clear whether {shown(name)} is a column"
        section.refuse("unit", reason=reason, hint=f'unit = "row", or unit = {{ column = "{name}" }}')
    return None if name == "row" else name


def pace(top: Section) -> float:
    """privacy.pace: answers come at multiples of this number of seconds; 0 where they come as soon as they can."""
    section = top.section("privacy")
    return section.positive("pace", "pace = 0.5, in seconds", LARGEST_PACE) if "pace" in section else 0.0


def budget(top: Section) -> Budget:
    """[budget]: epsilon, or epsilon and delta, or rho; beside delta also how it is enforced."""
    hint = "epsilon = 1.0, or epsilon = 1.0 and delta = 1e-6, or rho = 0.1"
    section = top.section("budget", f"[budget]\n{hint}")
    section.only(KEYS["budget"], HOMES)
    amounts = {
        key: section.positive(key, hint, LARGEST_BUDGET) for key in ("epsilon", "delta", "rho") if key in section
    }
    if amounts.get("delta", 0.0) >= 1:
        section.refuse("delta", reason="budget.delta must lie far below 1, and below 1 / number of people", hint=hint)
    keys = _delta_keys(section, amounts, opened=_has_open(top.entries))
    if "rho" in amounts and len(amounts) > 1:
        section.refuse("rho", reason="budget.rho stands alone, without epsilon and delta", hint=hint)
    if "rho" not in amounts and "epsilon" not in amounts:
        section.refuse(reason="budget.epsilon is missing", hint=hint)
    accountant, order = _enforced(section)
    with section.located(*(["order"] if "order" in section else [])):
        return Budget.of(
            epsilon=amounts.get("epsilon"),
            delta=amounts.get("delta"),
            rho=amounts.get("rho"),
            accountant=accountant,
            order=order,
            delta_keys=keys,
        )


KEY_SHARE = 0.1
"""The part of delta that is kept for looking for texts, where a column is open; it costs 0.9 % of rho at delta 1e-6."""


def _delta_keys(section: Section, amounts: Mapping[str, float], *, opened: bool) -> float:
    """The part of delta that is kept for looking for texts of open columns, here or under an earlier config."""
    if "delta_keys" not in section:
        return KEY_SHARE * amounts["delta"] if opened and "epsilon" in amounts and "delta" in amounts else 0.0
    hint = "delta = 1e-6 and delta_keys = 1e-7, or rho = 0.1 and delta_keys = 1e-7"
    keys = section.number("delta_keys", value=section.entries["delta_keys"], hint=hint)
    if "delta" not in amounts and "rho" not in amounts:
        reason = "a budget of epsilon alone rules out that a text is found which one person alone has"
        section.refuse("delta_keys", reason=reason, hint=hint)
    if not 0 <= keys < amounts.get("delta", 1.0):
        section.refuse("delta_keys", reason="budget.delta_keys must be a part of delta, and far below 1", hint=hint)
    return keys


def _has_open(entries: object) -> bool:
    """Whether some column, of whatever table, is open."""
    if not isinstance(entries, Mapping):
        return False
    return entries.get("domain") == "open" or any(_has_open(each) for each in entries.values())


def _enforced(section: Section) -> tuple[str, int | None]:
    """The accountant of a budget of epsilon and delta, and its order where one is named."""
    named = [key for key in ("accountant", "order") if key in section]
    if named and not ("epsilon" in section and "delta" in section):
        reason = f"{section.label(named[0])} is about a budget of epsilon and delta"
        section.refuse(named[0], reason=reason, hint='epsilon = 1.0, delta = 1e-6 and accountant = "rdp"')
    accountant = section.word("accountant", ("zcdp", "rdp"), "zcdp")
    if "order" not in section:
        return accountant, None
    if accountant != "rdp":
        section.refuse("order", reason="budget.order belongs to Renyi accounting", hint='accountant = "rdp"')
    return accountant, section.integer("order", "order = 16", least=SMALLEST_ORDER, most=LARGEST_ORDER)


def goal(top: Section, domain: Domain, *, public_size: int | None) -> tuple[Goal | None, Family | None]:
    """[goal]: the goal of questions that name none, and the family of questions that confidences cover together."""
    if "goal" not in top:
        return None, None
    section = top.section("goal", "[goal]\nerror = 50")
    section.only(KEYS["goal"], HOMES)
    declared = family(section, domain)
    kinds = [kind for kind in (GoalKind.ERROR, GoalKind.RMSE) if kind.value in section]
    if len(kinds) == 2:
        section.refuse("rmse", reason="goal has both error and rmse", hint="keep one of the two")
    if not kinds:
        if "confidence" in section:
            section.refuse("confidence", reason="goal.confidence needs an error beside it", hint="error = 50")
        return None, declared
    key = kinds[0].value
    amount, percent = _amount(section, key)
    if declared is not None and kinds[0] is GoalKind.RMSE:
        section.refuse("rmse", reason='contract = "simultaneous" promises errors only', hint="error = 50")
    if declared is not None and percent and public_size is None:
        reason = 'with contract = "simultaneous" a percentage needs public_size under [source]'
        section.refuse(key, reason=reason, hint="error = 50, in rows")
    confidence = _confidence(section) if "confidence" in section else 0.95
    with section.located(key):
        return Goal(kind=kinds[0], amount=amount, percent=percent, confidence=confidence), declared


def preset(top: Section, budget: Budget, domain: Domain, family: Family | None, sharing: AnalystSettings) -> str | None:
    """Which published system answers; None for the default, named or not, whose ledgers are those of always."""
    if "preset" not in top:
        return None
    name = top.text("preset", 'preset = "boost", above the first [section]')
    with top.located("preset"):
        return fitting(name, budget, domain, family, sharing)


def fitting(
    name: str | None, budget: Budget, domain: Domain, family: Family | None, sharing: AnalystSettings
) -> str | None:
    """A preset by its name, if a data set can have it; None for the default."""
    from bursar.presets import DEFAULT, listed  # imports every proposer

    if name is None or name == DEFAULT:
        return None
    reason, hint = listed(name).lacks(budget.mode, domain, family, sharing.policy)
    if reason:
        raise ConfigError(f'preset "{name}" {reason}\ntry: {hint}')
    return name


def horizon(top: Section) -> Horizon:
    """How many more questions like one that is asked are expected."""
    section = top.section("goal") if "goal" in top else None
    if section is None or "horizon" not in section:
        return Horizon.SOME
    value = section.entries["horizon"]
    if not isinstance(value, str | int):
        hint = 'horizon = "one-off", "some", "many", or a number of questions'
        section.refuse("horizon", reason=f"goal.horizon must be a word or a number, not {shown(value)}", hint=hint)
    with section.located("horizon"):
        return Horizon.of(value)


def _amount(section: Section, key: str) -> tuple[float, bool]:
    """A number of rows, or text such as "2%"."""
    hint = f'{key} = 50, or {key} = "2%"'
    value = section.entries[key]
    share = _percentage(value)
    amount = share if share is not None else section.number(key, value=value, hint=hint)
    if amount <= 0:
        section.refuse(key, reason=f"{section.label(key)} must be above 0", hint=hint)
    return amount, share is not None


def _confidence(section: Section) -> float:
    """A number such as 0.95, or text such as "95%"."""
    hint = 'confidence = 0.95, or confidence = "95%"'
    value = section.entries["confidence"]
    share = _percentage(value)
    confidence = share / 100 if share is not None else section.number("confidence", value=value, hint=hint)
    if not 0 < confidence < 1:
        reason = "goal.confidence must lie strictly between 0 and 1, or between 0% and 100%"
        section.refuse("confidence", reason=reason, hint=hint)
    return confidence


def _percentage(value: object) -> float | None:
    match = re.fullmatch(r"\s*(\d{1,9}(?:\.\d{1,15})?)\s*%\s*", value, re.ASCII) if isinstance(value, str) else None
    return float(match[1]) if match is not None else None


def columns_of(section: Section, domain: Domain, key: str, place: int, example: str) -> tuple[str, ...]:
    """The columns that one item of a list names, in the order of the domain; refused where one of them is no column."""
    item = section.items(key, example)[place]
    items: list[object] = item if isinstance(item, list) else [item]
    label = section.label(key, place)
    if not items:
        section.refuse(key, place, reason=f"{label} names no column", hint=example)
    names: list[str] = []
    for inner, name in enumerate(items):
        at = (key, place, inner) if isinstance(item, list) else (key, place)
        if not isinstance(name, str):
            reason = f"{section.label(*at)} must be the name of a column, not {shown(name)}"
            section.refuse(*at, reason=reason, hint=example)
        if name not in domain:
            near = nearest(name, domain.names)
            hint = f'did you mean "{near}"?' if near else "name one of the [columns.*]"
            if "," in name:
                hint = 'a list of columns for questions about several together: ["age", "sex"]'
            section.refuse(*at, reason=f"{section.label(*at)} is no declared column: {shown(name)}", hint=hint)
        names.append(name)
    columns = domain.ordered(names)
    if len(columns) < len(names):
        section.refuse(key, place, reason=f"{label} names a column twice", hint=example)
    return columns


FAMILY_EXAMPLE = 'family = ["age", ["age", "sex"]], each a column or a list of columns'


def family(section: Section, domain: Domain) -> Family | None:
    """The declared family of the simultaneous contract; None under the per-query contract, which has none."""
    word = section.word("contract", (kind.value for kind in Contract), Contract.PER_QUERY.value)
    if word == Contract.PER_QUERY.value:
        if "family" in section:
            reason = (
                'goal.family says which questions contract = "simultaneous" covers, and the contract is another one'
            )
            section.refuse("family", reason=reason, hint='contract = "simultaneous"')
        return None
    if "family" not in section:
        reason = 'goal.contract = "simultaneous" covers a declared family of questions, and goal.family is missing'
        section.refuse("contract", reason=reason, hint=FAMILY_EXAMPLE)
    items = section.items("family", FAMILY_EXAMPLE)
    if not items:
        section.refuse("family", reason="goal.family is empty: no question could be asked", hint=FAMILY_EXAMPLE)
    sets = dict.fromkeys(_columns(section, domain, place) for place in range(len(items)))
    return Family(domain=domain, sets=tuple(sets))


def _columns(section: Section, domain: Domain, place: int) -> tuple[str, ...]:
    """One set of columns, in the order of the domain."""
    columns = columns_of(section, domain, "family", place, FAMILY_EXAMPLE)
    boxes = Family(domain=domain, sets=(columns,)).questions(columns)
    if len(columns) > MOST_COLUMNS or boxes > LARGEST_FAMILY:
        reason = f"{section.label('family', place)} has too many questions to cover together"
        section.refuse("family", place, reason=reason, hint="fewer columns")
    return columns


GROUPS_EXAMPLE = 'groups = [["age", "sex"], ["region", "income"]], each a list of columns'

Groups = tuple[tuple[str, ...], ...]


def groups(top: Section, domain: Domain, family: Family | None) -> Groups:
    """The declared groups of columns, which have none in common; none where columns are grouped as they are asked."""
    if "histograms" not in top:
        return ()
    section = top.section("histograms", f"[histograms]\n{GROUPS_EXAMPLE}")
    section.only(KEYS["histograms"], HOMES)
    items = section.items("groups", GROUPS_EXAMPLE)
    if family is not None:
        reason = (
            'goal.contract = "simultaneous" has no use for histograms that learn: their answers depend on the noise'
        )
        section.refuse("groups", reason=reason, hint='contract = "per-query", or no [histograms]')
    places: dict[tuple[str, ...], int] = {}
    for place in range(len(items)):
        columns = columns_of(section, domain, "groups", place, GROUPS_EXAMPLE)
        _check(section, domain, place, columns)
        for other, earlier in places.items():
            if both := sorted(set(columns) & set(other)):
                reason = f"{section.label('groups', place)} and {section.label('groups', earlier)} both have {both[0]}"
                section.refuse("groups", place, reason=reason, hint="each column in one group, or one group of both")
        places[columns] = place
    return tuple(places)


def _check(section: Section, domain: Domain, place: int, columns: tuple[str, ...]) -> None:
    """Refuse the partition column, and what one histogram cannot hold."""
    label = section.label("groups", place)
    if domain.partition in columns:
        reason = f"{label} has the partition column {domain.partition}: every partition has histograms of its own"
        section.refuse("groups", place, reason=reason, hint=f"the other columns, without {domain.partition}")
    if (cells := domain.cells(columns)) > MOST_BINS:
        reason = f"{label} has {cells:,} joint cells, and a histogram has at most {MOST_BINS:,}"
        section.refuse("groups", place, reason=reason, hint="fewer columns, or wider bins")

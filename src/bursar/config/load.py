"""From a TOML file to a Config, or to a ConfigError with file, line, reason and what would work."""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import field, replace
from pathlib import Path
from urllib.parse import quote

from bursar.analysts.shares import AnalystSettings
from bursar.compile import Level
from bursar.compile.resolve import with_levels
from bursar.config import sections
from bursar.config.analysts import analysts
from bursar.config.columns import levels
from bursar.config.ledger import LedgerSettings, ledger_settings
from bursar.config.private_tables import with_private_tables
from bursar.config.section import HOMES, KEYS, Place, Section, line_numbers, shown
from bursar.config.sections import Groups, Sealing, check_together, groups, partition
from bursar.config.source_url import SourceUrl, source_url
from bursar.config.tables import own_rows, tables, with_flags
from bursar.config.view import view
from bursar.core.accounting.kind import ROOT
from bursar.core.budget import Budget, charter_of
from bursar.core.domain import Domain, Unit
from bursar.core.extensions.joins import Parent
from bursar.core.extensions.partitions import PartitionAxis
from bursar.core.extensions.relations import Relation
from bursar.core.ledger import Charter
from bursar.errors import ConfigError
from bursar.estimation.simultaneous import Family
from bursar.goal import Contract, Goal, Horizon
from bursar.lazy_dataclass import dataclass
from bursar.sql.joins import DeclaredTables

LARGEST_FILE = 16 * 2**20
LARGEST_ROWS = 10**12
LONGEST_PATH = 4096
MOST_PARTS = 32

_LONG_KEY = re.compile(
    rf"""(?<![\w"'-]) (?: (?: "(?:\\.|[^"\\\n])*+" | '[^'\n]*+' | [\w-]++ ) [ \t]*+ \. [ \t]*+ ){{{MOST_PARTS}}}""",
    re.VERBOSE,
)
"""A dotted key of too many parts: reading one takes the square of their number in time and memory."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """What the data owner declares. All of it is public."""

    path: Path
    dataset: str  # the data-set id that the ledger is bound to
    location: Path | None  # the source file; None where there is a url
    table: str  # the name behind FROM; in a DuckDB file also the table itself, unless there is a view
    domain: Domain
    unit: Unit
    budget: Budget
    max_rows: int
    preset: str | None = None  # which published system answers, for the life of the ledger; None: the default
    levels: tuple[Level, ...] = ()  # columns of groups of listed values
    url: SourceUrl | None = None  # the database that the table stays in
    view: str | None = None  # the SELECT over tables of a DuckDB file that gives the rows
    parents: tuple[Parent, ...] = ()  # further tables of the file, which add columns to the rows
    public_size: int | None = None
    goal: Goal | None = None  # for questions that name none
    horizon: Horizon = Horizon.SOME  # how many more such questions are expected, where a question does not say
    family: Family | None = None  # the questions that the simultaneous contract covers; None: per-query
    groups: Groups = ()  # columns that histograms keep together; none: those that are asked about together
    sealing: Sealing = field(default_factory=Sealing)  # when partitions of the data are complete
    pace: float = 0.0  # seconds; see `bursar.pace`
    analysts: AnalystSettings = field(default_factory=AnalystSettings)  # who shares the budget, and how
    ledger: LedgerSettings = field(default_factory=LedgerSettings)  # where the budget is kept
    unconfirmed: tuple[Place, ...] = ()  # sections that are guesses; nothing can be asked while there are any
    relation: str = ROOT  # the name of the table in the log, where it is not the one that the charter describes
    further: tuple[Config, ...] = ()  # private tables with rows of their own, each as a config over the same ledger

    @property
    def private(self) -> tuple[Config, ...]:
        """All private tables with rows of their own, this one first."""
        return (self, *self.further)

    @property
    def relations(self) -> tuple[Relation, ...]:
        """All private tables with rows of their own, as the ledger knows them."""
        return tuple(
            Relation(
                table=config.relation,
                domain=config.domain,
                unit=config.unit,
                max_rows=config.max_rows,
                joined=tuple(parent.to_json() for parent in config.parents),
            )
            for config in self.private
        )

    @property
    def columns(self) -> Domain:
        """All columns that a question can name: the declared ones, and their levels."""
        return with_levels(self.domain, self.levels)

    @property
    def contract(self) -> Contract:
        """What the confidence of an answer covers."""
        return Contract.PER_QUERY if self.family is None else Contract.SIMULTANEOUS

    @property
    def source_name(self) -> str:
        """What people call the place that the rows are in."""
        return self.location.name if self.location is not None else self.url.name if self.url is not None else ""

    @property
    def charter(self) -> Charter:
        """What the ledger is bound to: all that the privacy statement depends on, and a preset that was named.

        Losses that were counted one way and then another would add up to neither.
        """
        charter = charter_of(
            dataset=self.dataset,
            domain=self.domain,
            unit=self.unit,
            budget=self.budget,
            max_rows=self.max_rows,
            tables=[parent.to_json() for parent in self.parents],
        )
        return charter if self.preset is None else {**charter, "preset": self.preset}

    @property
    def tables(self) -> DeclaredTables:
        """The table that questions are about, and those that they may join to it."""
        return DeclaredTables(root=self.table, unit=self.unit.column, parents=self.parents)

    @property
    def notes_path(self) -> Path:
        """What was asked, for the planner, beside the ledger."""
        return self.beside("questions", ".sqlite")

    def beside(self, name: str, suffix: str) -> Path:
        """A file beside the ledger that belongs to this table alone."""
        table = f"-{quote(self.relation, safe='')}" if self.relation else ""
        return self.ledger_path.with_name(f"{name}{table}{suffix}")

    @property
    def ledger_path(self) -> Path:
        """`<stem>.bursar/ledger.sqlite` beside the file itself: a link to a config has no budget of its own.

        Where a database keeps the ledger, this machine has only the anchor of it, `ledger-anchor` in the same folder.
        """
        name = "ledger.sqlite" if self.ledger.url is None else "ledger-anchor"
        return self.path.parent / f"{self.path.stem}.bursar" / name


def load(path: str | os.PathLike[str]) -> Config:
    """Read a config that can be used. Raises ConfigError and nothing else, whatever the file holds.

    Guarantees: a config with a guess in it that nobody has confirmed is refused, so what a draft took from the data
    reaches nobody but the data owner.
    """
    text, file = read_text(path), os.fspath(path)
    config = parse_draft(text, path)
    if config.unconfirmed:
        place, more = config.unconfirmed[0], len(config.unconfirmed) - 1
        others = f", and {more} more" if more else ""
        line = line_numbers(text)[(*place, "confirmed")]
        reason = f"{label(place)}{others}: a guess that nobody has confirmed yet, so nothing can be asked"
        hint = f"if you own the data, bursar confirm -d {file}, which shows what each guess would make public"
        raise ConfigError(f"{reason}\ntry: {hint}", file, line)
    return config


def load_draft(path: str | os.PathLike[str]) -> Config:
    """The same, for the data owner: guesses are allowed, and listed in `unconfirmed`."""
    return parse_draft(read_text(path), path)


def parse_draft(text: str, path: str | os.PathLike[str]) -> Config:
    """The config that a text would be at a path."""
    # The place of the file itself, not of a link to it: the ledger and the data stand beside it.
    home = Path(os.path.realpath(path))
    top = _parse(os.fspath(path), text)
    top.only(KEYS[""], HOMES)
    dataset = top.text("dataset", 'dataset = "people", above the first [section]')
    source = top.section("source", '[source]\npath = "people.csv"\ntable = "people"\nmax_rows = 100000')
    source.only(KEYS["source"], HOMES)
    url = source_url(source, home.parent)
    location = None if url is not None else source.text("path", 'path = "people.csv"', longest=LONGEST_PATH)
    table = source.text("table", 'table = "people", the name that stands behind FROM')
    hint = "max_rows = 100000, a public number that the table will never exceed"
    max_rows = source.integer("max_rows", hint, least=1, most=LARGEST_ROWS)
    public_size = None
    if "public_size" in source:
        hint = "a public number of rows, at most max_rows; leave it out if the number is private"
        public_size = source.integer("public_size", hint, least=1, most=max_rows)
    domain = sections.domain(top)
    unit = sections.unit(top, public_size=public_size, max_rows=max_rows)
    with top.located("privacy", "neighbours"):
        PartitionAxis.of(domain, unit)
    goal, family = sections.goal(top, domain, public_size=public_size)
    declared = levels(top, domain)
    sharing = analysts(top, domain, table, declared) if "analysts" in top else AnalystSettings()
    sealing = partition(top)[1]
    check_together(top, sealing, family, sharing)
    budget = sections.budget(top)
    joined = view(source, location, unit, sealing) if "view" in source else None
    parents: tuple[Parent, ...] = ()
    if "tables" in top:
        parents = tables(top, domain, unit, sealing, table=table, path=location or "", url=url, view=joined is not None)
        domain = with_flags(domain, parents, top)
    first = Config(
        path=home,
        dataset=dataset,
        location=None if location is None else Path(os.path.abspath(home.parent / location)),
        url=url,
        table=table,
        view=joined,
        parents=parents,
        domain=domain,
        levels=declared,
        unit=unit,
        budget=budget,
        max_rows=max_rows,
        preset=sections.preset(top, budget, domain, family, sharing),
        public_size=public_size,
        goal=goal,
        horizon=sections.horizon(top),
        family=family,
        groups=groups(top, domain, family),
        sealing=sealing,
        pace=sections.pace(top),
        analysts=sharing,
        ledger=ledger_settings(top) if "ledger" in top else LedgerSettings(),
        unconfirmed=unconfirmed(top),
    )
    return with_private_tables(top, first) if "tables" in top else first


def with_preset(config: Config, name: str | None) -> Config:
    """The config with the preset that somebody names beside it; as it is where nobody does.

    Edge cases: another one than the config itself names is refused.
    """
    if name is None:
        return config
    preset = sections.fitting(name, config.budget, config.domain, config.family, config.analysts)
    if config.preset not in (None, preset):
        raise ConfigError(
            f'the config has preset = "{config.preset}", not "{name}"\ntry: without naming a preset beside the config',
            os.fspath(config.path),
        )
    if preset is not None and config.further:
        raise ConfigError(f'preset "{name}" answers about one private table', os.fspath(config.path))
    return replace(config, preset=preset)


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a config file, or a ConfigError."""
    file = os.fspath(path)
    try:
        with open(path, "rb") as handle:
            raw = handle.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        hint = "give the path of one (on the command line: -d PATH), or draft one from your data: bursar init data.csv"
        hint += ", or run `bursar demo` to see one"
        raise ConfigError(f"there is no such config file\ntry: {hint}", file) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a file name"
        raise ConfigError(f"the config cannot be read: {reason}", file) from None
    if len(raw) > LARGEST_FILE:
        raise ConfigError(f"a config has at most {LARGEST_FILE // 2**20} MiB", file)
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise ConfigError("the config is not UTF-8 text\ntry: save it as UTF-8", file, line) from None


def _parse(file: str, text: str) -> Section:
    if (key := _LONG_KEY.search(text)) is not None:
        line = text.count("\n", 0, key.start()) + 1
        raise ConfigError(f"a dotted key has at most {MOST_PARTS} parts", file, line)
    try:
        entries = tomllib.loads(text)
        return Section(file=file, lines=line_numbers(text), entries=entries)
    except tomllib.TOMLDecodeError as error:
        reason, line = _place(str(error), text)
        raise ConfigError(f"not valid TOML: {reason}\ntry: {_syntax_hint(reason)}", file, line) from None
    except RecursionError:
        raise ConfigError("the config is nested too deeply", file) from None
    except ValueError:
        raise ConfigError("the config holds a number that is too long to read", file) from None


def _place(message: str, text: str) -> tuple[str, int]:
    """tomllib's message without its place, and the line it names."""
    match = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", message)
    if match is None:
        return message, 0
    return message[: match.start()], int(match[1]) if match[1] else text.rstrip("\n").count("\n") + 1


def _syntax_hint(reason: str) -> str:
    if "twice" in reason or "overwrite" in reason or "Duplicate" in reason or "mutate" in reason:
        return "give each section, column and key once"
    if reason == "Invalid value":
        return 'put text in quotes, as in table = "people"; true and false are lower case'
    return 'lines of the form key = value, and sections of the form [name]; text stands in "quotes"'


SECTIONS = ("source", "privacy", "budget")


def unconfirmed(top: Section) -> tuple[Place, ...]:
    """The sections that say `confirmed = false`, in the order in which a person is asked about them.

    Edge cases: a section that says nothing was written by a person, and counts as confirmed.
    """
    columns = top.section("columns")
    sections = [*(top.section(name) for name in SECTIONS), *(columns.section(name) for name in columns.entries)]
    private = own_rows(top) if "tables" in top else ()
    for table in (top.section("tables").section(name) for name in private):
        columns = table.section("columns")
        sections += [table, *(columns.section(name) for name in columns.entries)]
    return tuple(section.place for section in sections if not _confirmed(section))


def _confirmed(section: Section) -> bool:
    value = section.entries.get("confirmed", True)
    if not isinstance(value, bool):
        reason = f"{section.label('confirmed')} must be true or false, not {shown(value)}"
        section.refuse("confirmed", reason=reason, hint="confirmed = true, once somebody has looked at this section")
    return value


def label(place: Place) -> str:
    """What a person calls a section: `budget`, or `columns.age`."""
    return ".".join(str(part) for part in place)

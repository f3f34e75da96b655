"""What the tab key offers in the shell: keywords, the table, columns, and the values that a column can have."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bursar.core.domain import Attribute, Bins, Dates, Domain, Value
from bursar.sql.tokens import needs_quotes

KEYWORDS = (
    *("SELECT", "COUNT(*)", "FROM", "WHERE", "GROUP BY", "AND", "OR", "NOT", "IN", "BETWEEN", "IS NULL", "AS"),
    *("AVG(", "SUM(", "MEDIAN(", "STDDEV(", "FILTER (WHERE", "EXPLAIN", "WITH ERROR", "WITH RMSE", "CONFIDENCE"),
)
COMMANDS = (r"\budget", r"\d", r"\explain", r"\goal", r"\help", r"\out", r"\q")

DELIMITERS = " \t\n,()=<>;"
"""What ends a word for readline; quotes are not among them, so that a value is completed with its quotes."""

MOST_VALUES = 200

_COMPARED = re.compile(
    r"""(?P<name> "(?:[^"]|"")+" | \w+ ) \s* (?: = | <> | != | <=? | >=? | \b(?:NOT\s+)?IN\s*\( (?:[^()]*,)? ) \s* $""",
    re.IGNORECASE | re.VERBOSE,
)
"""A column that stands before a comparison, or before a list."""


@dataclass(frozen=True, kw_only=True)
class Completer:
    """Public facts alone: the config's table and columns."""

    domain: Domain
    table: str

    def complete(self, line: str, begin: int) -> list[str]:
        """What may stand from `begin` to the end of the line; a value is offered with its quotes.

        `begin` is where readline sees the word begin. Inside quotes that may be later than where the value does, and
        then only the rest of the value is offered.
        """
        if line.startswith("\\") and " " not in line:
            return [command for command in COMMANDS if command.startswith(line)]
        start = _start(line)
        word = line[start:]
        found = [each for each in self._candidates(line[:start], word) if _begins(each, word)]
        return [each[begin - start :] for each in dict.fromkeys(found)]

    def _candidates(self, before: str, word: str) -> list[str]:
        compared = _COMPARED.search(before)
        column = None if compared is None else self._column(compared["name"])
        if column is not None:
            return _values(column)
        if word.startswith("'"):
            return [value for column in self.domain.attributes for value in _values(column) if value.startswith("'")]
        if before.rstrip().upper().endswith("FROM"):
            return [_name(self.table)]
        return [*map(_name, self.domain.names), *KEYWORDS, _name(self.table)]

    def _column(self, name: str) -> Attribute | None:
        wanted = name[1:-1].replace('""', '"') if name.startswith('"') else name
        return next((a for a in self.domain.attributes if a.name.casefold() == wanted.casefold()), None)


def _start(line: str) -> int:
    """Where the word begins that the line ends with; inside quotes, where they were opened."""
    for quote in "'\"":
        if line.count(quote) % 2:
            return line.rindex(quote)
    return max((line.rfind(each) for each in DELIMITERS), default=-1) + 1


def _begins(candidate: str, word: str) -> bool:
    return candidate.casefold().startswith(word.casefold())


def _values(column: Attribute) -> list[str]:
    if isinstance(column, Bins):
        return [f"{edge:.15g}" for edge in column.edges[:MOST_VALUES]]
    return [_literal(column.declared_label(cell)) for cell in range(min(column.declared, MOST_VALUES))]


def _literal(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int | float):
        return str(value)
    return "'" + str(value).replace("'", "''") + "'"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if needs_quotes(name) else name


def described(column: Attribute) -> str:
    """The values of a column in words, for `\\d`."""
    labels = [column.declared_label(cell) for cell in (0, column.declared - 1)]
    if column.ordered:
        what = f"{column.by.value}s" if isinstance(column, Dates) else "bins" if isinstance(column, Bins) else "numbers"
        told = f"{column.declared} {what}, {labels[0]} to {labels[1]}"
    else:
        shown = [_literal(column.declared_label(cell)) for cell in range(min(column.declared, 8))]
        told = ", ".join(shown) + (f", ... ({column.declared} values)" if column.declared > len(shown) else "")
    return told + _strays(column)


def _strays(column: Attribute) -> str:
    return ("; other" if column.other is not None else "") + ("; NULL" if column.has_null else "")

"""One section of a config, read key by key: every refusal says which file, which line, why, and what would work.

The standard parser reads values and forgets their lines; `line_numbers` finds where each key stands.
"""

from __future__ import annotations

import difflib
import json
import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from datetime import date
from typing import NoReturn

from bursar.errors import BursarError, ConfigError
from bursar.lazy_dataclass import dataclass

Place = tuple[str | int, ...]
"""The way to a value: section names, keys, and numbers of list items."""

_TOKEN = re.compile(
    r'''
      (?P<text>  """(?:\\.|[^\\])*?"{3,5} | \'\'\'.*?\'{3,5} | "(?:\\.|[^"\\])*" | \'[^\']*\' )
    | (?P<skip>  [ \t\r]+ | \#[^\n]* )
    | (?P<mark>  [\n\[\]{}=,.] )
    | (?P<bare>  [^\s\[\]{}=,.\#"\']+ )
    ''',
    re.VERBOSE | re.DOTALL,
)


def line_numbers(text: str) -> dict[Place, int]:
    """The line, from 1, of every section, key and list item of a text that `tomllib` has accepted.

    Edge cases: a section that is only implied (`[a.b]` implies `a`) stands where it is first implied; of several
    `[[a]]`, the first counts.
    """
    return _Scanner(tokens=list(_tokens(text))).scan()


@dataclass(frozen=True)
class _Token:
    text: str
    line: int


def _tokens(text: str) -> Iterator[_Token]:
    line = 1
    for match in _TOKEN.finditer(text):
        if match.lastgroup != "skip":
            yield _Token(match.group(), line)
        line += match.group().count("\n")
    yield _Token("\n", line)


@dataclass
class _Scanner:
    """A walk over the tokens of valid TOML; it follows nesting and notes lines, and leaves values alone."""

    tokens: list[_Token]
    at: int = 0
    lines: dict[Place, int] = field(default_factory=dict)

    def scan(self) -> dict[Place, int]:
        section: Place = ()
        while self.at < len(self.tokens):
            if self._accept("\n"):
                continue
            if self._accept("["):
                self._accept("[")
                section = self._key(())
                self._accept("]")
                self._accept("]")
            else:
                self._pair(section)
        return self.lines

    def _accept(self, mark: str) -> bool:
        present = self.tokens[self.at].text == mark
        self.at += present
        return present

    def _key(self, section: Place) -> Place:
        """A bare, quoted or dotted key; notes the line of each of its parts."""
        place = section
        while True:
            token = self.tokens[self.at]
            place += (_plain(token.text),)
            self.lines.setdefault(place, token.line)
            self.at += 1
            if not self._accept("."):
                return place

    def _pair(self, section: Place) -> None:
        place = self._key(section)
        self._accept("=")
        self._value(place)

    def _value(self, place: Place) -> None:
        if self._accept("{"):
            while not self._accept("}"):
                if not (self._accept(",") or self._accept("\n")):
                    self._pair(place)
        elif self._accept("["):
            item = 0
            while not self._accept("]"):
                if not (self._accept(",") or self._accept("\n")):
                    self.lines.setdefault((*place, item), self.tokens[self.at].line)
                    self._value((*place, item))
                    item += 1
        else:
            while self.tokens[self.at].text not in {"\n", ",", "]", "}"}:
                self.at += 1


def _plain(key: str) -> str:
    """A key without its quotes and escapes."""
    return next(iter(tomllib.loads(f"{key} = 0"))) if key[0] in "\"'" else key


LARGEST_INTEGER = 2**63 - 1
LONGEST_NAME = 200


@dataclass(frozen=True, kw_only=True)
class Section:
    """A table of the file with the way to it. Readers raise ConfigError and nothing else."""

    file: str
    lines: Mapping[Place, int]
    entries: Mapping[str, object]
    place: Place = ()

    def __contains__(self, key: str) -> bool:
        return key in self.entries

    def refuse(self, *keys: str | int, reason: str, hint: str = "") -> NoReturn:
        """Raise for the value at `keys` below this section, or for the section itself."""
        raise ConfigError(f"{reason}\ntry: {hint}" if hint else reason, self.file, self.line(*keys))

    def line(self, *keys: str | int) -> int:
        """The line of a key, or of the nearest section around it; 0 for the file as a whole."""
        place = (*self.place, *keys)
        return next((self.lines[place[:n]] for n in range(len(place), 0, -1) if place[:n] in self.lines), 0)

    def label(self, *keys: str | int) -> str:
        """What a message calls a key: its dotted way from the top of the file."""
        parts = (f"[{part}]" if isinstance(part, int) else f".{_key(part)}" for part in (*self.place, *keys))
        return "".join(parts).removeprefix(".")

    @contextmanager
    def located(self, *keys: str | int) -> Iterator[None]:
        """Give file and line to what a constructor further down refuses."""
        try:
            yield
        except BursarError as error:
            if isinstance(error, ConfigError) and error.file:
                raise
            self.refuse(*keys, reason=str(error))

    def only(self, allowed: Iterable[str], elsewhere: Mapping[str, str] | None = None) -> None:
        """Refuse every key that is not known here; `elsewhere` says where a known key belongs instead."""
        allowed = list(allowed)
        for key in self.entries:
            if key in allowed:
                continue
            if elsewhere is not None and key in elsewhere:
                hint = f"{key} belongs {elsewhere[key]}"
            elif near := nearest(key, allowed):
                hint = f"did you mean {near}?"
            else:
                hint = "known here: " + ", ".join(allowed)
            self.refuse(key, reason=f"{self.label(key)} is not known", hint=hint)

    def required(self, key: str, hint: str) -> object:
        """What stands at a key that must be there."""
        if key not in self.entries:
            self.refuse(reason=f"{self.label(key)} is missing", hint=hint)
        return self.entries[key]

    def section(self, key: str, hint: str = "") -> Section:
        """The section below; missing and empty are told apart, because only the first is a mistake everywhere."""
        entries = self.required(key, hint)
        if not isinstance(entries, dict):
            self.refuse(key, reason=f"{self.label(key)} must be a section, not {shown(entries)}", hint=hint)
        return Section(file=self.file, lines=self.lines, entries=entries, place=(*self.place, key))

    def text(self, key: str, hint: str, longest: int = LONGEST_NAME) -> str:
        """Required text that can be shown on one line."""
        value = self.required(key, hint)
        if not isinstance(value, str):
            self.refuse(key, reason=f"{self.label(key)} must be text in quotes, not {shown(value)}", hint=hint)
        with self.located(key):
            check_name(value, self.label(key), longest)
        return value

    def word(self, key: str, words: Iterable[str], default: str) -> str:
        """Optional text out of a short list."""
        words = list(words)
        value = self.entries.get(key, default)
        if value not in words:
            near = nearest(value, words) if isinstance(value, str) else ""
            hint = f'did you mean "{near}"?' if near else " or ".join(f'{key} = "{word}"' for word in words)
            self.refuse(key, reason=f"{self.label(key)} cannot be {shown(value)}", hint=hint)
        return str(value)

    def integer(self, key: str, hint: str, *, least: int = -LARGEST_INTEGER - 1, most: int = LARGEST_INTEGER) -> int:
        """A required whole number between two bounds, both included."""
        value = self.required(key, hint)
        if isinstance(value, bool) or not isinstance(value, int):
            self.refuse(key, reason=f"{self.label(key)} must be a whole number, not {shown(value)}", hint=hint)
        if not least <= value <= most:
            reason = f"{self.label(key)} must lie between {least} and {most}, not {shown(value)}"
            self.refuse(key, reason=reason, hint=hint)
        return value

    def number(self, *keys: str | int, value: object, hint: str) -> float:
        """A finite number; `value` is what stands at `keys`."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.refuse(*keys, reason=f"{self.label(*keys)} must be a number, not {shown(value)}", hint=hint)
        if abs(value) > LARGEST_INTEGER if isinstance(value, int) else not math.isfinite(value):
            self.refuse(*keys, reason=f"{self.label(*keys)} must be a finite number, not {shown(value)}", hint=hint)
        return float(value)

    def positive(self, key: str, hint: str, most: float) -> float:
        """A required number above 0 and at most `most`."""
        value = self.number(key, value=self.required(key, hint), hint=hint)
        if not 0 < value <= most:
            reason = f"{self.label(key)} must lie above 0 and at most {most:g}, not {shown(value)}"
            self.refuse(key, reason=reason, hint=hint)
        return value

    def items(self, key: str, hint: str) -> list[object]:
        """A required list."""
        value = self.required(key, hint)
        if not isinstance(value, list):
            self.refuse(key, reason=f"{self.label(key)} must be a list, not {shown(value)}", hint=hint)
        return value


def check_name(name: str, label: str, longest: int = LONGEST_NAME) -> None:
    """Names are shown, quoted and compared: they must be short, visible and free of stray spaces."""
    if not name or name != name.strip() or not name.isprintable() or len(name) > longest:
        raise ConfigError(f"{label} must be printable text of 1 to {longest} characters without spaces around it")


def nearest(word: str, words: Iterable[str]) -> str:
    """The known word that a misspelt one probably stands for, or nothing."""
    folded = {candidate.casefold(): candidate for candidate in words}
    close = difflib.get_close_matches(word[:LONGEST_NAME].casefold(), folded, n=1, cutoff=0.7)
    return folded[close[0]] if close else ""


def shown(value: object) -> str:
    """A value as the file has it, cut to a readable length."""
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "a section"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > LARGEST_INTEGER:
        return "a number beyond 64 bits"
    if isinstance(value, date):
        return value.isoformat()
    text = str(value) if isinstance(value, float) else json.dumps(value, default=str, ensure_ascii=False)
    return _short(text)


def _key(part: str) -> str:
    return _short(part if part.isprintable() and "." not in part else json.dumps(part))


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


KINDS = (("values",), ("lower", "upper", "step"), ("edges",), ("first", "last", "by"), ("domain", "capacity"))
"""The keys that tell kinds of column apart; a step makes decimals of whole numbers."""

KEYS = {
    "tables.*": ("key", "columns", "public", "owner", "max_contributions", "unit", "path", "max_rows", "tables"),
    "": (
        *("dataset", "preset", "partition", "source", "privacy", "budget"),
        *("goal", "analysts", "histograms", "ledger", "tables", "columns"),
    ),
    "partition": ("column", "seal", "grace_days"),
    "source": (
        *(
            "path",
            "url",
            "schema",
            "files",
            "table",
            "view",
            "max_rows",
            "public_size",
            "password_file",
            "timeout",
            "cells",
        ),
        "confirmed",
    ),
    "privacy": ("unit", "max_contributions", "neighbours", "pace", "confirmed"),
    "budget": ("epsilon", "delta", "delta_keys", "rho", "accountant", "order", "confirmed"),
    "goal": ("error", "rmse", "confidence", "horizon", "contract", "family"),
    "histograms": ("groups",),
    "ledger": ("url", "schema", "key_file", "asynchronous"),
    "analysts": ("policy", "scheduler", "probabilities", "idle", "shares", "seed", "log", "discover", "names"),
    "columns.*": (
        *(key for kind in KINDS for key in kind),
        "representatives",
        "outside",
        "null",
        "nullable",
        "levels",
        "confirmed",
    ),
}

HOMES = {
    key: f"under [{section}]" if section else "at the top of the file, above the first [section]"
    for section, keys in KEYS.items()
    for key in keys
    if key != "confirmed"
}
"""Where a key belongs that was found in the wrong section."""

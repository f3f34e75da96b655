"""Where each key of a TOML file stands: the standard parser reads values and forgets their lines."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field

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
        found = self.tokens[self.at].text == mark
        self.at += found
        return found

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

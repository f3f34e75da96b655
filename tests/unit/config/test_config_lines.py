"""The line of a key is where a person would look for it, however the file is laid out."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bursar.config.section import Place, line_numbers

TEXT = '''\
# [not.a.section]
top = "a # b = [c]"   # note
"quoted \\u0041.key" = """
not = a key
[nor.a.section] \\""" still text"""
dotted.key.one = 1.5
dotted.key.two = 1979-05-27T07:32:00.5Z

[a]
list = [ 1,
  2, # two
  [ 3,
    4 ],
  { x = 1, y = [ 5 ] },
]
inline = { p = { q = 1 }, r.s = 2, t = "}," }
raw = \'\'\'
fake = 1\'\'\'
  [ b . "c" ]   # spaced
  key='x'
[[d]]
e = 1
[[d]]
e = 2
'''


@pytest.mark.parametrize(
    ("place", "line"),
    [
        (("top",), 2),
        (("quoted A.key",), 3),
        (("dotted",), 6),
        (("dotted", "key", "one"), 6),
        (("dotted", "key", "two"), 7),
        (("a",), 9),
        (("a", "list"), 10),
        (("a", "list", 0), 10),
        (("a", "list", 1), 11),
        (("a", "list", 2, 1), 13),
        (("a", "list", 3), 14),
        (("a", "list", 3, "y", 0), 14),
        (("a", "inline", "p", "q"), 16),
        (("a", "inline", "r", "s"), 16),
        (("a", "inline", "t"), 16),
        (("a", "raw"), 17),
        (("b",), 19),
        (("b", "c"), 19),
        (("b", "c", "key"), 20),
        (("d",), 21),
        (("d", "e"), 22),
    ],
)
def test_lines(place: Place, line: int) -> None:
    tomllib.loads(TEXT)
    assert line_numbers(TEXT)[place] == line


def test_nothing_else_is_taken_for_a_key() -> None:
    names = {part for place in line_numbers(TEXT) for part in place}
    assert names.isdisjoint({"not", "nor", "fake", "c]", "}", "Z"})


def places(value: Any, place: Place = ()) -> set[Place]:
    """All places of a parsed file, as an oracle."""
    found = {place} if place else set()
    children: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return found.union(*(places(child, (*place, key)) for key, child in children))


SCALARS = st.sampled_from(['"a,]}#="', "'[x]'", "1.5", "true", "2020-01-01 10:00:00", '"""\n]\n"""', "-inf", '"\\""'])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: "[ # note ]\n" + ",\n".join(items) + "\n]"),
        st.lists(inner, max_size=3).map(lambda items: f"{{{', '.join(f'k{n} = {v}' for n, v in enumerate(items))}}}"),
    ),
    max_leaves=8,
)
ENTRIES = st.lists(VALUES, max_size=4).map(lambda vs: "".join(f"key{n} = {v} # = [\n" for n, v in enumerate(vs)))


@given(st.lists(ENTRIES, max_size=4))
def test_every_place_of_a_file_has_a_line(bodies: list[str]) -> None:
    text = "".join(f"\n[s{n}.'t u']\n{body}" for n, body in enumerate(bodies))
    numbers = line_numbers(text)
    assert set(numbers) == places(tomllib.loads(text))
    for place, number in numbers.items():
        if isinstance(place[-1], str):
            assert place[-1] in text.splitlines()[number - 1]

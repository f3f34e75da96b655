"""Changing one section of a config file in place: comments, order and everything else stay as they are.

Every edit is checked by reading the result: where anything but the one section would mean something else than before,
the edit is refused and the owner is asked to do it by hand.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

from bursar.config.load import label
from bursar.config.section import Place, line_numbers
from bursar.errors import ConfigError

Keys = dict[str, object]
"""A section of the file."""

FLAG = re.compile(r"\bconfirmed(\s*=\s*)false\b")


def keys(text: str, place: Place) -> str:
    """The lines of a section that say something, without its header, its comments and its mark."""
    lines, start, end = _block(text, place)
    declarations = [line for line in lines[start + 1 : end] if not re.match(r"\s*(#|confirmed\s*=)", line)]
    return "\n".join(declarations)


def comment(text: str, place: Place) -> str:
    """What the comment lines of a section say."""
    lines, start, end = _block(text, place)
    return " ".join(line.strip(" #\t") for line in lines[start + 1 : end] if re.match(r"\s*#", line))


def confirm(text: str, place: Place) -> str:
    """The text with `confirmed = true` in a section that says false."""
    lines = text.split("\n")
    at = line_numbers(text)[(*place, "confirmed")] - 1
    lines[at] = FLAG.sub(r"confirmed\1true", lines[at])
    return _checked(text, "\n".join(lines), place, lambda section: {**section, "confirmed": True})


def replace(text: str, place: Place, new: str) -> str:
    """The text with other keys in a section, confirmed: who types them has looked at it."""
    try:
        section = {**tomllib.loads(new), "confirmed": True}
    except (ValueError, RecursionError):
        hint = "one key = value on each line, as in the file"
        raise ConfigError(f"these are not lines of a config\ntry: {hint}") from None
    lines, start, end = _block(text, place)
    numbers = line_numbers(text)
    apart = {str(other[-1]) for other, number in numbers.items() if other[:-1] == place and not start < number <= end}

    def changed(before: Keys) -> Keys:
        return {**{key: value for key, value in before.items() if key in apart}, **section}  # sections of their own

    lines[start + 1 : end] = [*new.strip("\n").split("\n"), "confirmed = true"]
    return _checked(text, "\n".join(lines), place, changed)


def leave_out(text: str, place: Place) -> str:
    """The text with a section turned into comments."""
    lines, start, end = _block(text, place)
    lines[start:end] = [f"# {line}".rstrip() for line in lines[start:end]]
    return _checked(text, "\n".join(lines), place, lambda section: None)


def share(text: str, shares: Mapping[str, float]) -> str:
    """The text with these shares of the budget; without any, all analysts have it in common."""
    expected = tomllib.loads(text)
    section = expected.setdefault("analysts", {})
    listed = ", ".join(f"{json.dumps(name, ensure_ascii=False)} = {part!r}" for name, part in shares.items())
    declaration = [f"shares = {{ {listed} }}"] if shares else []
    section.pop("shares", None)
    section |= {"shares": dict(shares)} if shares else {}
    lines, numbers = text.rstrip("\n").split("\n"), line_numbers(text)
    if ("analysts",) not in numbers:
        lines += ["", "[analysts]", *declaration]
    elif (place := numbers.get(("analysts", "shares"))) is not None:
        lines[place - 1 : place] = declaration
    else:
        lines[numbers[("analysts",)] : numbers[("analysts",)]] = declaration
    after = "\n".join(lines) + "\n"
    try:
        if tomllib.loads(after) == expected:
            return after
    except tomllib.TOMLDecodeError:
        pass
    raise ConfigError(
        f"{label(('analysts', 'shares'))} is written in a way that cannot be changed here\ntry: change it by hand"
    )


def save(path: str | os.PathLike[str], text: str) -> None:
    """Put the text in the place of the file, all at once; a link keeps pointing to it."""
    home = Path(os.path.realpath(path))
    part = home.with_name(f".{home.name}.part")
    try:
        part.write_text(text, encoding="utf-8", newline="\n")
        part.replace(home)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a file name"
        raise ConfigError(f"the config cannot be written: {reason}", os.fspath(path)) from None


def _block(text: str, place: Place) -> tuple[list[str], int, int]:
    """The lines, and from where to where a section with a header of its own goes."""
    lines, numbers = text.split("\n"), line_numbers(text)
    start = numbers[place] - 1
    inside = [number for other, number in numbers.items() if other[: len(place)] == place]
    if place[:-1] == ("tables",):  # its columns are sections of their own
        headers = [number for number in range(start + 1, len(lines)) if lines[number].lstrip().startswith("[")]
        inside = [number for number in inside if number <= min(headers, default=len(lines))]
    last = max(inside)
    after = (number for number in range(last, len(lines)) if re.match(r"\s*(#|\[|$)", lines[number]))
    return lines, start, next(after, len(lines))


def _checked(before: str, after: str, place: Place, change: Callable[[Keys], Keys | None]) -> str:
    """The text after an edit, if it says what the text before said but for the change of one section."""
    expected = around = tomllib.loads(before)
    for part in place[:-1]:
        around = around[str(part)]
    changed = change(around.pop(str(place[-1])))
    if changed is not None:
        around[str(place[-1])] = changed
    if not around:
        raise ConfigError("a config declares at least one column, and this is the last one")
    try:
        edited = tomllib.loads(after)
    except tomllib.TOMLDecodeError:
        edited = None
    if edited != expected:
        raise ConfigError(f"{label(place)} is written in a way that cannot be changed here\ntry: change it by hand")
    return after

"""`bursar confirm`: the data owner settles the guesses of a draft, one by one or by name."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bursar.cli.options import CONFIG, Data
from bursar.errors import ConfigError

if TYPE_CHECKING:
    from bursar.config import Config
    from bursar.config.lines import Place

CHOICES = "[y]es, [c]hange it, [l]eave the column out, [s]kip, [q]uit? "


WORDS = {letter: word[0] for word in ("yes", "change", "leave", "skip", "quit") for letter in (word[0], word)}
"""What can be answered: a letter or its word, and nothing that only begins so. A line of TOML is no answer."""


def confirm(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="source, privacy, budget, or names of columns; all that is open unless named."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="For scripts: confirm what is named without asking.")] = False,
    data: Data = CONFIG,
) -> None:
    """For the data owner: go through the guesses of a draft, and confirm that each is right and may be public.

    Example for scripts: bursar confirm --yes privacy budget age sex
    """
    from bursar.config import edit, load_draft
    from bursar.setup.confirm import change, every_guess, named

    config = load_draft(data)
    places = named(config, names) if names else list(config.unconfirmed)
    if yes and not names:
        raise ConfigError(f"--yes needs the names of what you confirm\ntry: {every_guess(config)}", str(data))
    for number, place in enumerate(places, 1):
        if yes:
            change(data, partial(edit.confirm, place=place))
        elif not _walked(data, place, f"{number} of {len(places)}"):
            break
    _left(load_draft(data), data)


def _walked(data: Path, place: Place, number: str) -> bool:
    """Ask about one guess until it is settled; False to stop."""
    from bursar.config import edit, load_draft
    from bursar.config.confirmed import label
    from bursar.setup.confirm import asks, change, says

    print(f"\n{label(place)} ({number}): {says(load_draft(data), place)}\n{asks(place)}")
    while True:
        choice = _line(CHOICES if place[0] == "columns" else CHOICES.replace("[l]eave the column out, ", ""))
        try:
            match "q" if choice is None else WORDS.get(choice.strip().lower()):
                case "y":
                    change(data, partial(edit.confirm, place=place))
                    return True
                case "c":
                    change(data, partial(edit.replace, place=place, new=_lines(data, place)))
                    return True
                case "l" if place[0] == "columns":
                    change(data, partial(edit.leave_out, place=place))
                    return True
                case "s":
                    return True
                case "q":
                    return False
                case _:
                    print("a letter, please; to type lines of the config, choose c first")
        except ConfigError as error:
            print(error)


def _lines(data: Path, place: Place) -> str:
    from bursar.config import edit
    from bursar.config.load import read_text

    print(f"{edit.keys(read_text(data), place)}\nType all its lines as they should be; an empty line ends them.")
    lines: list[str] = []
    while (line := _line("  ")) is not None and line.strip():
        lines.append(line)
    return "\n".join(lines)


def _line(prompt: str) -> str | None:
    """What a person types; None where nobody does."""
    print(prompt, end="", flush=True)
    text = "" if sys.stdin is None else sys.stdin.readline()
    return text.rstrip("\n") if text else None


def _left(config: Config, data: Path) -> None:
    from bursar.setup.confirm import every_guess

    option = "" if data == CONFIG else f" -d {data}"
    if not config.unconfirmed:
        print(f"\neverything is confirmed\nnext: bursar check{option}, then bursar create{option}")
        return
    print(f"\nstill open: {len(config.unconfirmed)}; nothing can be asked until they are settled")
    print(f"try: {every_guess(config)}{option}")

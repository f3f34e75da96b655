"""`bursar confirm`: the data owner settles the guesses of a draft, one by one, kind by kind, or by name."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bursar.cli.opened import CONFIG, Data, working
from bursar.errors import ConfigError, SourceError

if TYPE_CHECKING:
    from bursar.config import Config
    from bursar.config.section import Place

YES, ALL, ONE, NUMBER = "[y]es", "[y]es to all of these", "[o]ne by one", "[n]umber of rows"
CHANGE, LEAVE, SKIP, QUIT = "[c]hange it", "[l]eave the column out", "[s]kip", "[q]uit"


def confirm(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="source, privacy, budget, or names of columns; all that is open unless named."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="For scripts: confirm what is named without asking.")] = False,
    data: Data = CONFIG,
) -> None:
    """For the data owner: go through the guesses of a draft, and confirm that each is right and may be public.

    Columns of one kind are shown together, and can be confirmed together; those that are named, one by one.

    Example for scripts: bursar confirm --yes privacy budget age sex
    """
    from bursar.config import load_draft
    from bursar.curate.confirm import every_guess, named, screens

    config = load_draft(data)
    if yes and not names:
        raise ConfigError(f"--yes needs the names of what you confirm\ntry: {every_guess(config)}", str(data))
    if yes:
        _settle(data, named(config, names or []))
    else:
        alone = [("", [place]) for place in named(config, names)] if names else screens(config, config.unconfirmed)
        _walk(data, alone)
    _left(load_draft(data), data)


def _effect(config: Config, places: Sequence[Place]) -> dict[str, str]:
    """What these declarations change, in words; nothing where the rows cannot be looked at."""
    from bursar.curate.changes import changes

    names = [str(place[-1]) for place in places if place[0] == "columns"]
    if not names or not config.location.is_file():
        return {}
    try:
        with working(f"looking at {config.location.name}"):
            return {change.name: change.text for change in changes(config, config.location, names) if change.text}
    except SourceError as error:
        print(f"\nwhat the columns change cannot be counted: {error}")
        return {}


def _walk(data: Path, screens: Sequence[tuple[str, list[Place]]]) -> None:
    """Ask about screen after screen, until somebody wants to stop."""
    from bursar.config import load_draft

    of, done = sum(len(places) for _, places in screens), 0
    effect = _effect(load_draft(data), [place for _, places in screens for place in places])
    if effect:
        print("\nWhat is said about your values below is counted exactly, from the rows: keep it to yourself.")
    for kind, places in screens:
        going = _together(data, kind, places, done, of, effect) if kind else _alone(data, places[0], done, of, effect)
        if not going:
            break
        done += len(places)


def _together(data: Path, kind: str, places: list[Place], done: int, of: int, effect: Mapping[str, str]) -> bool:
    """Show columns of one kind, and ask about all of them; False to stop."""
    from bursar.config import load_draft
    from bursar.curate.confirm import asks, says

    config = load_draft(data)
    width = max(len(str(place[-1])) for place in places)
    print(f"\n{kind} ({done + 1} to {done + len(places)} of {of}):")
    for place in places:
        print(f"  {place[-1]:<{width}}  {says(config, place)}")
        if str(place[-1]) in effect:
            print(f"  {'':<{width}}  {effect[str(place[-1])]}")
    print(asks(config, places[0]))
    match _choice(ALL, ONE, SKIP, QUIT):
        case "y":
            _settle(data, places)
            return True
        case "o":
            return all(_alone(data, place, done + number, of, effect) for number, place in enumerate(places))
        case choice:
            return choice == "s"


def _alone(data: Path, place: Place, done: int, of: int, effect: Mapping[str, str]) -> bool:
    """Ask about one guess until it is settled; False to stop."""
    from bursar.config import load_draft
    from bursar.config.load import label, read_text
    from bursar.curate import edit
    from bursar.curate.confirm import asks, change, counting, says

    config = load_draft(data)
    print(f"\n{label(place)} ({done + 1} of {of}): {says(config, place, shown=sys.maxsize)}")
    if place[0] == "columns" and str(place[-1]) in effect:
        print(effect[str(place[-1])])
    if place == ("privacy",) and (why := edit.comment(read_text(data), place)):
        print(why)
    print(asks(config, place))
    counted = [NUMBER] if place == ("privacy",) and config.unit.column is not None else []
    leave = [LEAVE] if place[0] == "columns" else []
    while True:
        choice = _choice(YES, *counted, CHANGE, *leave, SKIP, QUIT)
        try:
            match choice:
                case "y":
                    _settle(data, [place])
                case "n":
                    new = counting(read_text(data), _number(f"  rows of one {config.unit.column}: "))
                    change(data, partial(edit.replace, place=place, new=new))
                case "c":
                    changed = change(data, partial(edit.replace, place=place, new=_lines(data, place)))
                    for told in _effect(changed, [place]).values():
                        print(told)
                case "l":
                    change(data, partial(edit.leave_out, place=place))
            return choice != "q"
        except ConfigError as error:
            print(error)


def _settle(data: Path, places: Sequence[Place]) -> None:
    """Confirm what the owner has seen or named, all at once."""
    from bursar.curate import edit
    from bursar.curate.confirm import change

    change(data, lambda text: reduce(edit.confirm, places, text))


def _choice(*choices: str) -> str:
    """The letter of a choice; a letter or its word is an answer, and nothing that only begins so."""
    words = {word: choice[1] for choice in choices for word in (choice[1], choice[1:].replace("]", "").split()[0])}
    while (typed := _line(f"{', '.join(choices)}? ")) is not None:
        if typed.strip().lower() in words:
            return words[typed.strip().lower()]
        print(f"a letter, please{'; to type lines of the config, choose c first' if CHANGE in choices else ''}")
    return "q"


def _number(prompt: str) -> int:
    typed = (_line(prompt) or "").strip()
    if not typed.isdecimal() or not typed.isascii() or int(typed) < 1:
        raise ConfigError("a whole number from 1 on, please")
    return int(typed)


def _lines(data: Path, place: Place) -> str:
    from bursar.config.load import read_text
    from bursar.curate import edit

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
    from bursar.curate.confirm import every_guess

    option = "" if data == CONFIG else f" -d {data}"
    if not config.unconfirmed:
        print(f"\neverything is confirmed\nnext: bursar check{option}, then bursar create{option}")
        return
    print(f"\nstill open: {len(config.unconfirmed)}; nothing can be asked until they are settled")
    print(f"try: {every_guess(config)}{option}")

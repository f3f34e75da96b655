"""`bursar init`, `bursar check` and `bursar confirm`: from a table to a config that can be used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from bursar.cli.opened import CONFIG, Data, Json, working
from bursar.errors import ConfigError, SourceError
from bursar.report import text as show

if TYPE_CHECKING:
    from bursar.config import Config
    from bursar.config.section import Place
    from bursar.curate.draft_from_data import Drafted

Counted = TypeVar("Counted")


def init(
    file: Annotated[
        str | None,
        typer.Argument(
            help="A CSV, Parquet or DuckDB file, or postgresql:// or mysql://user@host/database/table.",
            show_default=False,
        ),
    ] = None,
    data: Data = CONFIG,
    table: Annotated[
        str | None, typer.Option(metavar="NAME", help="The table in a DuckDB file; else the name behind FROM.")
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="FILE", help="A SmartNoise YAML or private-pgm JSON file; it may stand beside the data."
        ),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(metavar="row|COLUMN", help="Who is protected: each row, or all rows with one value of a column."),
    ] = None,
    epsilon: Annotated[float | None, typer.Option(metavar="1.0", help="The budget, if you know it already.")] = None,
    copy: Annotated[
        bool,
        typer.Option("--copy", help="Write a CSV file with other separators or numbers once more, plainly, beside it."),
    ] = False,
    add: Annotated[
        bool, typer.Option("--add", help="Add the table to a config that there is, as a further one of its people.")
    ] = False,
) -> None:
    """For the data owner, first: draft a config from your data. Looks at the rows, and tells nobody but you.

    Example: bursar init people.csv

    Example: bursar init visits.csv --add
    """
    from bursar.curate.draft_from_data import add_table
    from bursar.curate.draft_from_data import init as draft

    if add:
        if file is None or source is not None or epsilon is not None or copy:
            raise ConfigError("--add takes a file, and of the options --table, --unit and -d")
        with working(f"reading {file}") as told:
            drafted = add_table(file, data, table=table, unit=unit, told=told)
        _tell_table(drafted, data)
        return
    with working(f"reading {file or source}") as told:
        drafted = draft(file, data, table=table, source=source, unit=unit, epsilon=epsilon, copy=copy, told=told)
    _tell(drafted, data, looked=file is not None and drafted.config.url is None)


def check(data: Data = CONFIG, json: Json = False) -> None:
    """For the data owner: what a config promises, what it does to your values, and what questions would cost. Free.

    How many values each declaration changes is counted exactly, from the rows: it is for your eyes only.
    """
    from bursar.config import load_draft
    from bursar.curate.check import check as checked

    config = load_draft(data)
    with working(f"looking at {config.source_name}"):
        report = checked(config, data=_file(config))
    show.result(report, as_json=json)


def _tell(drafted: Drafted, data: Path, *, looked: bool) -> None:
    from bursar.curate.check import first_question, protected
    from bursar.curate.confirm import says

    draft, config = drafted.draft, drafted.config
    option = "" if data == CONFIG else f" -d {data}"
    print(f"wrote {data}, a draft from {draft.origin}\n")
    if drafted.plain is not None:
        print(f"{drafted.plain.told}.")
        print(f"{drafted.plain.path} has the same rows, as they are read without guessing, and the config is about it:")
        print("keep it as safe as the original.\n")
    for column in draft.columns:
        print(f"  {column.name:<16} {says(config, ('columns', column.name))}")
    for left in draft.left_out:
        print(f"  {left.name:<16} left out: {left.reason}")
    print(f"\n  protected is {protected(config)}")
    if config.unit.column is None and not draft.unit.given:
        print("  (if people have several rows: --unit COLUMN, or in bursar confirm; COLUMN says whose row it is)")
        if drafted.candidates:
            names = ", ".join(drafted.candidates)
            print(f"  Is one of these whose row it is? Nearly every row has a value of its own in: {names}")
    if config.unit.column is not None and config.unit.max_contributions == 1:
        print("  (if people have more rows, say how many in bursar confirm: what is beyond is in no answer)")
    if looked:
        print("\nThe draft shows what is in the data: keep it to yourself until you have confirmed it.")
    print(f"\nnext:  bursar confirm{option}    look at each guess; what you confirm becomes public")
    print(f"       bursar check{option}      what is promised then, and what questions cost")
    print(f"       bursar create{option}     open the budget, once")
    if (first := first_question(config)) is not None:
        cost = f"{first.unit} {first.price:.3g} of {config.budget.amount:g}"
        print(f'       bursar query{option} "{first.sql} WITH ERROR {first.within:g}"    costs {cost}')


def _tell_table(drafted: Drafted, data: Path) -> None:
    from bursar.config import load_draft
    from bursar.curate.confirm import says

    draft, config = drafted.draft, load_draft(data)
    option = "" if data == CONFIG else f" -d {data}"
    print(f"added the table {draft.table} to {data}, a draft from {draft.origin}\n")
    for column in draft.columns:
        print(f"  {column.name:<16} {says(config, ('tables', draft.table, 'columns', column.name))}")
    for left in draft.left_out:
        print(f"  {left.name:<16} left out: {left.reason}")
    print(f"\n  {says(config, ('tables', draft.table))}")
    if not draft.url:
        print("\nThe draft shows what is in the data: keep it to yourself until you have confirmed it.")
    print("\nUntil all of it is confirmed, nothing can be asked about the other tables either.")
    print(f"\nnext:  bursar confirm{option}    look at each guess; what you confirm becomes public")
    print(f"       bursar create{option}     if there is no budget yet; else: bursar add-table {draft.table}{option}")


YES, ALL, ONE, NUMBER = "[y]es", "[y]es to all of these", "[o]ne by one", "[n]umber of rows"
CHANGE, LEAVE, SKIP, QUIT = "[c]hange it", "[l]eave the column out", "[s]kip", "[q]uit"
ATTEMPTS, MOST_LINES = 10, 10_000
"""How often one thing is asked, and how much can be typed: a program's answers may have no end."""


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


def _file(config: Config) -> Path | None:
    """The file whose rows can be looked at, if there is one."""
    return config.location if config.location is not None and config.location.is_file() else None


def _effect(config: Config, places: Sequence[Place]) -> dict[Place, str]:
    """What these declarations change, in words; nothing where the rows cannot be looked at."""
    from bursar.curate.changes import changes, rows_left_out
    from bursar.curate.confirm import is_column, of_table, whose

    told: dict[Place, str] = {}
    for place in places:
        if whose(place) and (rows := _looked_at(of_table(config, place), rows_left_out)) is not None and rows.text:
            told[place] = rows.text
    for around in dict.fromkeys(place[:-1] for place in places if is_column(place)):
        names = [str(place[-1]) for place in places if place[:-1] == around]
        counted = _looked_at(of_table(config, around), partial(changes, names=names))
        told |= {(*around, change.name): change.text for change in counted or () if change.text}
    return told


def _looked_at(config: Config, count: Callable[[Config, Path], Counted]) -> Counted | None:
    """What is counted among a table's rows; None where they cannot be looked at."""
    file = _file(config)
    if file is None:
        return None
    try:
        with working(f"looking at {file.name}"):
            return count(config, file)
    except SourceError as error:
        print(f"\nwhat the config changes cannot be counted: {error}")
        return None


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


def _together(data: Path, kind: str, places: list[Place], done: int, of: int, effect: Mapping[Place, str]) -> bool:
    """Show columns of one kind, and ask about all of them; False to stop."""
    from bursar.config import load_draft
    from bursar.curate.confirm import asks, says

    config = load_draft(data)
    width = max(len(str(place[-1])) for place in places)
    print(f"\n{kind} ({done + 1} to {done + len(places)} of {of}):")
    for place in places:
        print(f"  {place[-1]:<{width}}  {says(config, place)}")
        if place in effect:
            print(f"  {'':<{width}}  {effect[place]}")
    print(asks(config, places[0]))
    match _choice(ALL, ONE, SKIP, QUIT):
        case "y":
            _settle(data, places)
            return True
        case "o":
            return all(_alone(data, place, done + number, of, effect) for number, place in enumerate(places))
        case choice:
            return choice == "s"


def _alone(data: Path, place: Place, done: int, of: int, effect: Mapping[Place, str]) -> bool:
    """Ask about one guess until it is settled; False to stop."""
    from bursar.config import load_draft
    from bursar.config.load import label, read_text
    from bursar.curate import edit
    from bursar.curate.confirm import asks, change, counting, is_column, of_table, says, whose

    config = load_draft(data)
    print(f"\n{label(place)} ({done + 1} of {of}): {says(config, place, shown=sys.maxsize)}")
    if place in effect:
        print(effect[place])
    people = whose(place)
    if people and (why := edit.comment(read_text(data), place)):
        print(why)
    print(asks(config, place))
    counted = [NUMBER] if people and config.unit.column is not None else []
    leave = [LEAVE] if is_column(place) else []
    for _ in range(ATTEMPTS):
        choice = _choice(YES, *counted, CHANGE, *leave, SKIP, QUIT)
        try:
            match choice:
                case "y":
                    _settle(data, [place])
                case "n":
                    rows = _number(f"  rows of one {of_table(config, place).unit.column}: ")
                    new = counting(read_text(data), place, rows)
                    _tell_effect(change(data, partial(edit.replace, place=place, new=new)), place)
                case "c":
                    _tell_effect(change(data, partial(edit.replace, place=place, new=_lines(data, place))), place)
                case "l":
                    change(data, partial(edit.leave_out, place=place))
            return choice != "q"
        except ConfigError as error:
            print(error)
    raise _nobody()


def _tell_effect(config: Config, place: Place) -> None:
    for told in _effect(config, [place]).values():
        print(told)


def _settle(data: Path, places: Sequence[Place]) -> None:
    """Confirm what the owner has seen or named, all at once."""
    from bursar.curate import edit
    from bursar.curate.confirm import change

    change(data, lambda text: reduce(edit.confirm, places, text))


def _choice(*choices: str) -> str:
    """The letter of a choice; a letter or its word is an answer, and nothing that only begins so."""
    words = {word: choice[1] for choice in choices for word in (choice[1], choice[1:].replace("]", "").split()[0])}
    for _ in range(ATTEMPTS):
        if (typed := _line(f"{', '.join(choices)}? ")) is None:
            return "q"
        if typed.strip().lower() in words:
            return words[typed.strip().lower()]
        print(f"a letter, please{'; to type lines of the config, choose c first' if CHANGE in choices else ''}")
    raise _nobody()


def _nobody() -> ConfigError:
    hint = "bursar confirm in a terminal, or for scripts bursar confirm --yes and the names of what you confirm"
    return ConfigError(f"stopped after {ATTEMPTS} answers that do not fit; what was settled before stays\ntry: {hint}")


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
    while len(lines) < MOST_LINES and (line := _line("  ")) is not None and line.strip():
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

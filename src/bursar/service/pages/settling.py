"""SetUp up a new data set: a file, a draft that is confirmed guess by guess, a check, and the ledger. No TOML.

Everything happens in folders below one that whoever runs the server has named. A draft shows what is in the data, so
nobody but who began it can look at it.
"""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import partial, reduce
from pathlib import Path
from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Form, Request, Response, UploadFile
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.datastructures import FormData

import bursar
from bursar.config import Config, load_draft
from bursar.config.load import label, read_text
from bursar.config.section import Place
from bursar.curate import edit
from bursar.curate.changes import changes, rows_left_out
from bursar.curate.check import check
from bursar.curate.confirm import asks, change, says
from bursar.curate.draft import toml
from bursar.curate.draft_from_data import Drafted, init
from bursar.errors import ConfigError, SourceError
from bursar.report.status import budget_words
from bursar.service.datasets import Guest, people_of
from bursar.service.pages.render import page
from bursar.service.pages.visits import NotThere, OwnersVisit, PageRoute, Visit, datasets_of, log_in
from bursar.service.people import Role

LARGEST_FILE = 4 * 2**30
"""Bytes of an upload; what is larger is put into the folder by other means, and named."""

ENDINGS = (".csv", ".csv.gz", ".parquet")
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,40}")


class UploadRoute(PageRoute):
    """A route that takes a table."""

    largest_body = LARGEST_FILE


router = APIRouter(route_class=PageRoute, include_in_schema=False)
uploads = APIRouter(route_class=UploadRoute, include_in_schema=False)


@dataclass(frozen=True, kw_only=True)
class GuessField:
    """Something about a guess that can be typed."""

    name: str
    label: str
    value: str
    kind: str = "text"  # of an input; or "lines", or "choice"
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Guess:
    """A section of the draft as it is asked about."""

    place: str
    title: str
    says: str
    asks: str
    effect: str  # what it does to the stored values, exactly: for the owner's eyes
    fields: tuple[GuessField, ...]
    column: bool
    confirmed: bool


@dataclass(frozen=True)
class SetUp:
    """A draft of somebody, in its folder."""

    folder: Path
    whose: str
    names: tuple[str, ...]  # of all columns of the file
    candidates: tuple[str, ...]  # that may say whose row it is

    @property
    def config(self) -> Path:
        """The draft itself."""
        return self.folder / "bursar.toml"

    @property
    def table(self) -> Path:
        """The file that was given."""
        [file] = [path for path in self.folder.iterdir() if path.name.startswith("data.")]
        return file

    def keep(self) -> None:
        """Write down what the draft does not say."""
        told = {"whose": self.whose, "names": self.names, "candidates": self.candidates}
        (self.folder / "setup.json").write_text(json.dumps(told), encoding="utf-8")


def _room(request: Request) -> Path:
    room = datasets_of(request).room
    if room is None:
        raise NotThere
    return room


def _who(visit: Visit) -> str:
    return f"{visit.data.name}\n{visit.name}"


def _settings(visit: Visit) -> list[SetUp]:
    """The drafts that somebody has begun and not finished."""
    drafts = []
    for path in sorted(_room(visit.request).glob("*/setup.json")):
        told = json.loads(path.read_text(encoding="utf-8"))
        if told["whose"] == _who(visit):
            drafts.append(SetUp(path.parent, told["whose"], tuple(told["names"]), tuple(told["candidates"])))
    return drafts


def _setting(visit: Visit, name: str) -> SetUp:
    for setting in _settings(visit):
        if setting.folder.name == name:
            return setting
    raise NotThere


@router.get("/{data}/setup")
def begin(visit: OwnersVisit) -> HTMLResponse:
    """The form for a file, and the drafts that wait."""
    room = _room(visit.request)
    files = [path.name for path in sorted(room.iterdir()) if path.is_file() and path.name.lower().endswith(ENDINGS)]
    return page(visit.request, "setup.html", visit=visit, files=files, drafts=_settings(visit))


@uploads.post("/{data}/setup")
def take(
    visit: OwnersVisit,
    name: Annotated[str, Form(max_length=100)],
    epsilon: Annotated[float, Form(gt=0)],
    file: UploadFile | None = None,
    there: Annotated[str, Form(max_length=300)] = "",
) -> Response:
    """Take a file, look at it, and write a draft."""
    room, name = _room(visit.request), name.strip()
    if not NAME.fullmatch(name):
        raise ConfigError("a data set is called by a letter, and letters, digits and _ after it")
    given = there or (file.filename if file is not None else "") or ""
    ending = next((ending for ending in ENDINGS if given.lower().endswith(ending)), None)
    if ending is None:
        raise ConfigError(f"a table is a file that ends in {', '.join(ENDINGS)}")
    if there and (there not in {path.name for path in room.iterdir()} or Path(there).name != there):
        raise ConfigError("there is no such file in the folder of the server")
    folder = room / name
    if name in datasets_of(visit.request) or folder.exists():
        raise ConfigError(f'there is a data set, or a draft, called "{name}" already\ntry: another name')
    folder.mkdir(mode=0o700)
    try:
        target = folder / f"data{ending}"
        if there:
            shutil.copyfile(room / there, target)
        elif file is not None:
            with target.open("wb") as out:
                shutil.copyfileobj(file.file, out)
        target.chmod(0o600)
        _keep(_drafted(folder, target, name, unit=None, epsilon=epsilon), folder, _who(visit))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return RedirectResponse(f"{visit.home}/setup/{name}", 303)


def _drafted(folder: Path, table: Path, name: str, *, unit: str | None, epsilon: float) -> Drafted:
    return init(table, folder / "bursar.toml", table=name, unit=unit, epsilon=epsilon, copy=True)


def _keep(drafted: Drafted, folder: Path, whose: str) -> None:
    draft = drafted.draft
    names = (*(column.name for column in draft.columns), *(omitted.name for omitted in draft.left_out))
    SetUp(folder, whose, names, drafted.candidates).keep()


@router.get("/{data}/setup/{name}")
def confirm_page(visit: OwnersVisit, name: str) -> HTMLResponse:
    """The guesses that wait for a word; when there are none, what the data set would promise."""
    setting = _setting(visit, name)
    config = load_draft(setting.config)
    return page(
        visit.request,
        "setup_confirm.html",
        visit=visit,
        setting=setting,
        config=config,
        budget=budget_words(config.budget),
        guesses=_guesses(setting, config),
        report=None if config.unconfirmed else check(config, data=config.location),
    )


def _guesses(setting: SetUp, config: Config) -> list[Guess]:
    text = read_text(setting.config)
    entries = tomllib.loads(text)
    open_ = [str(place[-1]) for place in config.unconfirmed if place[0] == "columns"]
    effects: dict[Place, str] = {}
    with suppress(SourceError):
        if open_:
            effects = {("columns", each.name): each.text for each in changes(config, config.location, open_)}
        if (rows := rows_left_out(config, config.location)) is not None:
            effects["privacy",] = rows.text
    places: list[Place] = [("source",), ("privacy",), ("budget",)]
    places += [("columns", column) for column in config.domain.names]
    return [
        Guess(
            place=label(place),
            title=str(place[-1]) if place[0] == "columns" else TITLES[str(place[0])],
            says=says(config, place),
            asks=asks(config, place),
            effect=effects.get(place, ""),
            fields=_fields(setting, config, place, entries),
            column=place[0] == "columns",
            confirmed=place not in config.unconfirmed,
        )
        for place in places
    ]


TITLES = {"source": "How many rows at most", "privacy": "Who is protected", "budget": "How much may be learnt"}


def _fields(setting: SetUp, config: Config, place: Place, entries: Mapping[str, object]) -> tuple[GuessField, ...]:
    if place == ("source",):
        return (GuessField(name="max_rows", label="Never more rows than", value=str(config.max_rows), kind="number"),)
    if place == ("budget",):
        return (GuessField(name="epsilon", label="epsilon", value=f"{config.budget.amount:g}", kind="number"),)
    if place == ("privacy",):
        unit = config.unit
        choices = ("each row", *setting.names)
        whose = GuessField(
            name="unit", label="Whose row is it?", value=unit.column or "each row", kind="choice", choices=choices
        )
        most = str(unit.max_contributions)
        counted = GuessField(name="max_contributions", label="Rows of one person that count", value=most, kind="number")
        return (whose, counted) if unit.column is not None else (whose,)
    columns = entries["columns"]
    assert isinstance(columns, dict)
    keys = columns[place[1]]
    match keys:
        case {"values": values}:
            lines = "\n".join(str(value).lower() if isinstance(value, bool) else str(value) for value in values)
            return (GuessField(name="values", label="Values, one on each line", value=lines, kind="lines"),)
        case {"lower": lower, "upper": upper}:
            return (
                GuessField(name="lower", label="From", value=str(lower), kind="number"),
                GuessField(name="upper", label="To", value=str(upper), kind="number"),
            )
        case {"edges": {"from": first, "to": last, "step": step}}:
            return (
                GuessField(name="from", label="From", value=f"{first:.15g}", kind="number"),
                GuessField(name="to", label="To", value=f"{last:.15g}", kind="number"),
                GuessField(name="step", label="In steps of", value=f"{step:.15g}", kind="number"),
            )
        case {"first": first, "last": last, "by": by}:
            return (
                GuessField(name="first", label="First day", value=str(first), kind="date"),
                GuessField(name="last", label="Last day", value=str(last), kind="date"),
                GuessField(name="by", label="Told apart by", value=by, kind="choice", choices=("day", "week", "month")),
            )
    return ()


@router.post("/{data}/setup/{name}/confirm")
def confirm(visit: OwnersVisit, name: str, place: Annotated[list[str], Form()]) -> Response:
    """The owner's word that guesses are right, and may be public."""
    setting = _setting(visit, name)
    chosen = [each for each in load_draft(setting.config).unconfirmed if label(each) in place]
    change(setting.config, lambda text: reduce(edit.confirm, chosen, text))
    return _back(visit, name)


@router.post("/{data}/setup/{name}/leave")
def leave_out(visit: OwnersVisit, name: str, place: Annotated[str, Form()]) -> Response:
    """Nobody can ask about a column."""
    setting = _setting(visit, name)
    change(setting.config, partial(edit.leave_out, place=_column(load_draft(setting.config), place)))
    return _back(visit, name)


def _column(config: Config, place: str) -> Place:
    for column in config.domain.names:
        if label(("columns", column)) == place:
            return ("columns", column)
    raise NotThere


@router.post("/{data}/setup/{name}/change")
async def change_guess(visit: OwnersVisit, name: str) -> Response:
    """Other numbers, values or days than the draft has guessed; they need no further word."""
    form = await visit.request.form()
    await to_thread.run_sync(_changed, visit, name, form)
    return _back(visit, name)


def _changed(visit: Visit, name: str, form: FormData) -> None:
    setting = _setting(visit, name)
    config, text, place = load_draft(setting.config), read_text(setting.config), str(form.get("place", ""))
    typed = {key: str(value).strip() for key, value in form.items()}
    try:
        if place == "privacy":
            _change_unit(visit, setting, config, typed)
            return
        if place == "source":
            keys = {**tomllib.loads(text)["source"], "max_rows": int(typed["max_rows"])}
        elif place == "budget":
            keys = {"epsilon": float(typed["epsilon"])}
        else:
            keys = _column_keys(tomllib.loads(text)["columns"][_column(config, place)[1]], typed)
    except (ValueError, KeyError):
        raise ConfigError("these are not the numbers, values or days that belong there") from None
    where: Place = (place,) if place in TITLES else _column(config, place)
    lines = "\n".join(f"{key} = {toml(value)}" for key, value in keys.items() if key != "confirmed")
    change(setting.config, partial(edit.replace, place=where, new=lines))


def _column_keys(before: Mapping[str, object], typed: Mapping[str, str]) -> dict[str, object]:
    match before:
        case {"values": list() as values}:
            lines = [line.strip() for line in typed["values"].splitlines() if line.strip()]
            kind = type(values[0])
            listed = [line.lower() == "true" if kind is bool else kind(line) for line in lines]
            return {**before, "values": listed}
        case {"lower": _, "upper": _}:
            return {**before, "lower": int(typed["lower"]), "upper": int(typed["upper"])}
        case {"edges": dict()}:
            return {**before, "edges": {key: _number(typed[key]) for key in ("from", "to", "step")}}
        case {"first": _, "last": _}:
            first, last = date.fromisoformat(typed["first"]), date.fromisoformat(typed["last"])
            return {**before, "first": first, "last": last, "by": typed["by"]}
    raise KeyError


def _number(text: str) -> int | float:
    number = float(text)
    return int(number) if number.is_integer() else number


def _change_unit(visit: Visit, setting: SetUp, config: Config, typed: Mapping[str, str]) -> None:
    """Another unit is another draft: the column that tells people apart is no column to ask about."""
    unit = None if typed["unit"] == "each row" else typed["unit"]
    if unit is not None and unit not in setting.names:
        raise KeyError
    if unit != config.unit.column and config.location is not None:
        before = read_text(setting.config)
        setting.config.unlink()
        try:
            drafted = _drafted(
                setting.folder, config.location, config.table, unit=unit or "row", epsilon=config.budget.amount
            )
        except BaseException:
            edit.save(setting.config, before)
            raise
        SetUp(setting.folder, setting.whose, setting.names, drafted.candidates).keep()
        return
    keys: dict[str, object] = {"unit": "row" if unit is None else {"column": unit}, "neighbours": "add-remove"}
    if unit is not None:
        keys["max_contributions"] = int(typed.get("max_contributions", "1"))
    lines = "\n".join(f"{key} = {toml(value)}" for key, value in keys.items())
    change(setting.config, partial(edit.replace, place=("privacy",), new=lines))


@router.post("/{data}/setup/{name}/create")
def create(visit: OwnersVisit, name: str) -> Response:
    """Open the ledger, once; who set the data set up is its first owner, and logged in to it."""
    setting = _setting(visit, name)
    with bursar.create(setting.config) as created:
        config = created.config
    config.ledger_path.chmod(0o600)
    people = people_of(config)
    people.add(visit.name, Role.OWNER)
    token = people.make_token(visit.name)
    people.close()
    (setting.folder / "setup.json").unlink()
    datasets_of(visit.request).refresh()
    fresh = datasets_of(visit.request)[config.dataset]
    holder = fresh.people.holder(token)
    assert holder is not None
    response = page(visit.request, "setup_done.html", visit=visit, made=config.dataset, token=token)
    log_in(response, Guest(holder[0], fresh, holder[1]), secure=visit.request.url.scheme == "https")
    return response


@router.post("/{data}/setup/{name}/discard")
def discard(visit: OwnersVisit, name: str) -> Response:
    """Throw a draft away, and the copy of the data with it."""
    shutil.rmtree(_setting(visit, name).folder)
    return RedirectResponse(f"{visit.home}/setup", 303)


def _back(visit: Visit, name: str) -> Response:
    return RedirectResponse(f"{visit.home}/setup/{name}", 303)

"""The data sets that a process serves: each is opened once, and everybody asks through the same planner and views."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Self

from bursar.config import Config, load
from bursar.errors import BursarError, ConfigError, LedgerError
from bursar.report.status import OWNER
from bursar.report.text import warnings
from bursar.service.people import ELSEWHERE, People, Person, Role
from bursar.session import Bursar, open

PEOPLE = "people.sqlite"
"""Who may ask, beside the ledger."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
"""What can stand in a URL and be the name of a PostgreSQL database as it is."""


@dataclass(frozen=True)
class DataSet:
    """One data set that is served."""

    name: str
    bursar: Bursar  # of the data owner
    people: People
    read: int  # when the config was changed last before it was read

    @property
    def changed(self) -> bool:
        """Whether its config was changed since it was opened."""
        return _read_at(self.config.path) != self.read

    @property
    def config(self) -> Config:
        """What is public about it."""
        return self.bursar.config

    def session(self, person: Person) -> Bursar:
        """The data set as one person asks it, under their name."""
        return self.bursar.as_analyst(person.name)


@dataclass(frozen=True)
class Guest:
    """Somebody whose token is good, the data set it is for, and its public id."""

    person: Person
    data: DataSet
    token: str
    account: str | None = None  # elsewhere, where that is what let them in

    @property
    def good(self) -> bool:
        """Whether they would be let in now: a reply may take longer than a token is good."""
        if self.account is not None:
            return self.data.people.of_account(self.account) is not None
        return self.data.people.good(self.token)


class DataSets(Mapping[str, DataSet]):
    """All data sets of a server, by name. Closed with the block."""

    def __init__(self, opened: Sequence[DataSet], room: Path | None = None) -> None:
        self._by_name = {data.name: data for data in opened}
        self._lock = threading.Lock()
        self.room = room  # where owners set up new ones

    @staticmethod
    def open(places: Sequence[str | Path], room: Path | None = None) -> DataSets:
        """Open configs, or folders with a bursar.toml. Refuses what others on this machine could read.

        `room` is a folder in which owners may set up more; those that are there already are opened, too. It is made
        where there is none.
        """
        if room is not None:
            room.mkdir(mode=0o700, parents=True, exist_ok=True)  # rows are uploaded to it
        places = [*places, *(() if room is None else _finished(room))]
        opened: list[DataSet] = []
        try:
            for place in places:
                data = _opened(config_at(place))
                opened.append(data)
                if sum(data.name == other.name for other in opened) > 1:
                    raise ConfigError(f'two data sets are called "{data.name}"', str(data.config.path))
        except BaseException:
            DataSets(opened).close()
            raise
        return DataSets(opened, room)

    def refresh(self) -> list[str]:
        """Open data sets anew whose configs have changed, and those that were set up since; says which.

        One that cannot be opened stays as it was. Questions that run go on with what they began with.
        """
        fresh: dict[str, DataSet] = {}
        with self._lock:
            for data in self.values():
                if data.changed:
                    read = _read_at(data.config.path)
                    with suppress(BursarError):  # shares that are not given out yet, a text that is half written
                        fresh[data.name] = replace(data, bursar=open(data.config.path, analyst=OWNER), read=read)
            opened_paths = {data.config.path for data in self.values()}
            for path in () if self.room is None else _finished(self.room):
                if path not in opened_paths:
                    with suppress(BursarError):
                        data = _opened(path)
                        fresh.setdefault(data.name, data)
            self._by_name = {**self._by_name, **fresh}  # whoever goes through the old one is not disturbed
        return list(fresh)

    def guest(self, token: str) -> Guest | None:
        """Who comes with a token; None where it is nobody's."""
        for data in self.values():
            if (holder := data.people.holder(token)) is not None:
                return Guest(holder[0], data, holder[1])
        return None

    def guest_of(self, account: str, preferred: str) -> Guest | None:
        """Who comes with an account elsewhere, which may be let in to several data sets: to one of them preferably."""
        admitted = [(data, person) for data in self.values() if (person := data.people.of_account(account)) is not None]
        if not admitted:
            return None
        data, person = max(admitted, key=lambda each: (each[0].name == preferred, each[1].role is Role.OWNER))
        return Guest(person, data, f"{ELSEWHERE}{sha256(account.encode()).hexdigest()[:12]}", account)

    def close(self) -> None:
        """Close all of them."""
        for data in self.values():
            data.people.close()
            data.bursar.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __getitem__(self, name: str) -> DataSet:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)


def _finished(room: Path) -> list[Path]:
    """The configs below a folder whose set-up is over: who may ask is the last thing to be written down."""
    configs = [path.resolve() for path in sorted(room.glob("*/bursar.toml"))]
    return [path for path in configs if (path.parent / f"{path.stem}.bursar" / PEOPLE).exists()]


def config_at(place: str | Path) -> Path:
    """The config that a path means: the file itself, or bursar.toml in a folder."""
    path = Path(place)
    return path / "bursar.toml" if path.is_dir() else path


def people_of(config: Config) -> People:
    """Who may ask about a data set, beside its ledger."""
    if not config.ledger_path.exists():
        raise LedgerError(f"{config.path} has no ledger yet\ntry: bursar create -d {config.path}")
    return People(config.ledger_path.with_name(PEOPLE))


def _opened(path: Path) -> DataSet:
    config = load(path)
    if not _NAME.fullmatch(config.dataset):
        raise ConfigError(
            f'"{config.dataset}" cannot be part of a URL: a data set that is served has a name of letters, digits and '
            "_.-, at most 63, which begins with a letter or digit\nthe name is bound to the ledger, and cannot be "
            "changed where one exists",
            str(path),
        )
    people = people_of(config)
    for file in (config.ledger_path, people.path):
        if file.stat().st_mode & 0o077:
            people.close()
            raise LedgerError(f"others on this machine can read {file}\ntry: chmod 600 {file}")
    read = _read_at(path)
    session = open(path, analyst=OWNER)
    warnings(session.ledger.warnings)
    return DataSet(config.dataset, session, people, read)


def _read_at(path: Path) -> int:
    return path.stat().st_mtime_ns

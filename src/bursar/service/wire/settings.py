"""What SET, SHOW and the options of a connection speak of: PostgreSQL's settings, and those of bursar.*."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TypedDict

from bursar import __version__
from bursar.errors import GoalError
from bursar.goal import Horizon
from bursar.planner.goals import Wanted, number
from bursar.service.wire.failures import BAD_SETTING, WireError
from bursar.service.wire.statements import value_of

VERSION = "15.0"
"""Clients choose by it which SQL they send."""

SERVER_VERSION = f"{VERSION} (Bursar {__version__})"

OWN = {
    "bursar.error": "the largest error of an answer, 50 or 2%; empty: as the config says",
    "bursar.confidence": "with which the error holds, 95% or 0.95",
    "bursar.max_cost": "a question that would cost more is refused",
    "bursar.bounds": "on: every number n has columns n_low and n_high",
    "bursar.horizon": "how many more such questions are expected: one-off, some, many or a number",
}

FIXED = {
    "server_version": SERVER_VERSION,
    "server_version_num": "150000",
    "server_encoding": "UTF8",
    "integer_datetimes": "on",
    "is_superuser": "off",
    "in_hot_standby": "off",
    "max_identifier_length": "63",
    "max_index_keys": "32",
    "transaction_isolation": "read committed",
    "lc_collate": "C",
    "lc_ctype": "C",
    "block_size": "8192",
}
"""What nobody can set."""

OTHERS = {
    "application_name": "",
    "client_encoding": "UTF8",
    "client_min_messages": "notice",
    "datestyle": "ISO, MDY",
    "intervalstyle": "postgres",
    "timezone": "UTC",
    "search_path": '"$user", public',
    "standard_conforming_strings": "on",
    "default_transaction_read_only": "on",
    "default_transaction_isolation": "read committed",
    "transaction_read_only": "on",
    "default_table_access_method": "heap",
    "extra_float_digits": "1",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
    "bytea_output": "hex",
    "jit": "off",
    "row_security": "on",
    "session_authorization": "",
    "role": "none",
    "synchronous_commit": "on",
    "work_mem": "4MB",
    "escape_string_warning": "on",
    "xmloption": "content",
    "geqo": "on",
    "enable_seqscan": "on",
    "default_tablespace": "",
    "timezone_abbreviations": "Default",
    "tcp_keepalives_idle": "0",
    "gin_fuzzy_search_limit": "0",
    "ssl_renegotiation_limit": "0",
    "quote_all_identifiers": "off",
    "synchronize_seqscans": "on",
    "check_function_bodies": "on",
}
"""What can be set; of most nothing depends on it."""

REPORTED = {
    "server_version": "server_version",
    "server_encoding": "server_encoding",
    "client_encoding": "client_encoding",
    "datestyle": "DateStyle",
    "intervalstyle": "IntervalStyle",
    "timezone": "TimeZone",
    "integer_datetimes": "integer_datetimes",
    "standard_conforming_strings": "standard_conforming_strings",
    "is_superuser": "is_superuser",
    "session_authorization": "session_authorization",
    "application_name": "application_name",
    "default_transaction_read_only": "default_transaction_read_only",
    "in_hot_standby": "in_hot_standby",
}
"""What clients are told at the start and whenever it changes, as PostgreSQL spells it."""

LONGEST_VALUE = 1_000
_ON, _OFF = ("on", "true", "yes", "1"), ("off", "false", "no", "0")


class GoalSettings(TypedDict, total=False):
    """What settings say about how a question is asked."""

    within: str
    confidence: str
    max_cost: float
    horizon: str | int


class SessionSettings:
    """The settings of one connection; what it began with is what RESET goes back to."""

    def __init__(self, user: str) -> None:
        self._start = {
            **FIXED,
            **OTHERS,
            **dict.fromkeys(OWN, ""),
            "bursar.bounds": "off",
            "session_authorization": user,
        }
        self._now = dict(self._start)

    def begin(self, parameters: Mapping[str, str]) -> None:
        """Take what the first message says: keys of its own, and `options` with -c name=value."""
        for name, value in [*parameters.items(), *_options(parameters.get("options", ""))]:
            if name in ("user", "database", "options", "replication") or name.startswith("_pq_."):
                continue
            self.set(name, value_of(value))
        self._start = dict(self._now)

    def set(self, name: str, value: str | None) -> None:
        """Change a setting, or put it back; None for the name: all of them. Refused where it makes no sense."""
        key = name.lower()
        if key not in self._start and ("." not in key or key.startswith("bursar.")):
            hint = f"there are {', '.join(OWN)}" if key.startswith("bursar.") else ""
            raise WireError("42704", f'unrecognized configuration parameter "{name}"', hint=hint)
        if key in FIXED and value is not None:
            raise WireError("55P02", f'parameter "{name}" cannot be changed')
        if value is not None and len(value) > LONGEST_VALUE:
            raise WireError(BAD_SETTING, f'invalid value for parameter "{name}"')
        self._now[key] = self._start.get(key, "") if value is None else self._checked(key, value)

    def reset(self) -> None:
        """As the connection began."""
        self._now = dict(self._start)

    def get(self, name: str) -> str | None:
        """What a setting is; None where there is none of the name."""
        return self._now.get(name.lower())

    def all(self) -> list[tuple[str, str]]:
        """All settings, by name."""
        return sorted(self._now.items())

    @property
    def bounds(self) -> bool:
        """Whether the ends of intervals are shown."""
        return self._now["bursar.bounds"] == "on"

    @property
    def timeout(self) -> float | None:
        """Seconds after which a statement is given up; None: never."""
        milliseconds = self._now["statement_timeout"].removesuffix("ms")
        return float(milliseconds) / 1000 if milliseconds.isdigit() and int(milliseconds) else None

    @property
    def quiet(self) -> bool:
        """Whether notices are not wanted."""
        return self._now["client_min_messages"].lower() in ("warning", "error", "fatal", "panic", "log")

    def goal(self) -> GoalSettings:
        """How questions are asked that say nothing of it themselves."""
        goal: GoalSettings = {}
        if within := self._now["bursar.error"]:
            goal["within"] = within
        if confidence := self._now["bursar.confidence"]:
            goal["confidence"] = confidence
        if most := self._now["bursar.max_cost"]:
            goal["max_cost"] = float(most)
        if horizon := self._now["bursar.horizon"]:
            goal["horizon"] = int(horizon) if horizon.isdigit() else horizon
        return goal

    def _checked(self, key: str, value: str) -> str:
        wrong = WireError(BAD_SETTING, f'invalid value for parameter "{key}": "{value}"', hint=OWN.get(key, ""))
        if key == "client_encoding" and value.upper().replace("-", "") not in ("UTF8", "UNICODE", "SQL_ASCII"):
            raise WireError("0A000", f'the encoding "{value}" is not available', hint="everything is UTF-8 here")
        if key == "client_encoding":
            return "UTF8"
        if key == "bursar.bounds":
            if value.lower() not in (*_ON, *_OFF):
                raise wrong
            return "on" if value.lower() in _ON else "off"
        if key in OWN and value:
            try:
                match key:
                    case "bursar.error":
                        Wanted(within=value).goal()
                    case "bursar.confidence":
                        Wanted(within=1, confidence=value).goal()
                    case "bursar.max_cost" if not 0 <= number(value, key) < float("inf"):
                        raise wrong
                    case "bursar.horizon":
                        Horizon.of(int(value) if value.isdigit() else value)
            except GoalError as error:
                wrong.detail = str(error)
                raise wrong from None
        return value


def _options(text: str) -> list[tuple[str, str]]:
    """The settings in `-c name=value --name=value`; anything else is no option that can be given here."""
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    settings: list[tuple[str, str]] = []
    while words:
        word = words.pop(0)
        if word == "-c" and words:
            word = words.pop(0)
        name, equals, value = word.removeprefix("-c").removeprefix("--").partition("=")
        if not equals:
            raise WireError("22023", "options are given as -c name=value")
        settings.append((name if "." in name else name.replace("-", "_"), value))
    return settings

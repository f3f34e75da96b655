"""The ledger of a config: a file beside it, or a schema of a PostgreSQL database; and the key of the latter."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from bursar.config import Config, load
from bursar.config.ledger import LedgerSettings, key_path
from bursar.core.accounting import Carried
from bursar.core.extensions.move import LedgerSite, file_site, move, schema_site
from bursar.core.ledger import Health, Ledger, PostgresLedger, PostgresPlace, SqliteLedger
from bursar.core.ledger.postgresql.cipher import KEY_BYTES
from bursar.errors import BursarError, LedgerError

KEY_VARIABLE = "BURSAR_LEDGER_KEY"


def create_ledger(config: Config, carried: Carried | None = None) -> Ledger:
    """A new ledger, and with it a new budget; of which what is carried over from an earlier ledger is spent."""
    url = config.ledger.url
    if url is None:
        return SqliteLedger.create(config.ledger_path, config.charter, carried=carried)
    return PostgresLedger.create(_place(config, url, _key(config, make=True)), config.charter, carried=carried)


def nothing_there(config: Config) -> None:
    """Refuse a place that has a ledger, or a trace of one."""
    site = _site(config, make=True)
    if site.exists() or site.anchor.exists():
        raise LedgerError(f"there is a ledger at {site.name} already, so nothing can be carried over to a new one")


def others_with_a_ledger(config: Config) -> list[Path]:
    """Configs in the same folder that have a ledger about the same table: together they are more than one budget."""
    found = []
    for path in sorted(config.path.parent.glob("*.toml")):
        with suppress(BursarError):
            other = load(path)
            same = (other.location, other.url, other.table) == (config.location, config.url, config.table)
            if path.resolve() != config.path.resolve() and same and other.ledger_path.exists():
                found.append(path)
    return found


def open_ledger(config: Config, expect: tuple[int, str] | None = None) -> Ledger:
    """The ledger that is there."""
    url = config.ledger.url
    if url is None:
        return SqliteLedger.open(config.ledger_path, config.charter, expect=expect)
    return PostgresLedger(_place(config, url, _key(config, make=False)), config.charter, expect=expect)


def move_ledger(config: Config, target: LedgerSettings) -> Health:
    """Move the ledger of a config to where these settings say; the config must say so from then on."""
    if (config.ledger.url is None) == (target.url is None):
        raise LedgerError("a ledger is moved between a file and a PostgreSQL database, and it is of that kind already")
    return move(_site(config, make=False), _site(replace(config, ledger=target), make=True))


def key_to_keep(config: Config) -> Path | None:
    """The file without which a ledger in a database cannot be used; None where there is none."""
    path = key_path(config.ledger, config.ledger_path.parent)
    return None if config.ledger.url is None or KEY_VARIABLE in os.environ else path


def _site(config: Config, *, make: bool) -> LedgerSite:
    if config.ledger.url is None:
        return file_site(config.ledger_path)
    return schema_site(_place(config, config.ledger.url, _key(config, make=make)))


def _place(config: Config, url: str, key: bytes) -> PostgresPlace:
    settings = config.ledger
    return PostgresPlace(
        url=url, schema=settings.schema, anchor=config.ledger_path, key=key, lossy=settings.asynchronous
    )


def _key(config: Config, *, make: bool) -> bytes:
    """From the environment, or from a file that nobody else can read, which a new ledger may begin."""
    path = key_path(config.ledger, config.ledger_path.parent)
    given = os.environ.get(KEY_VARIABLE)
    if given is not None:
        return _read(given, f"the variable {KEY_VARIABLE}")
    if make and not path.exists():
        _write(path)
    try:
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise LedgerError(f"others on this machine can read {path}\ntry: chmod 600 {path}")
        return _read(path.read_text(encoding="ascii"), f"the file {path}")
    except FileNotFoundError:
        raise LedgerError(
            f"the key of the ledger is missing: there is no {path}\n"
            f"try: copy it from the machine where the ledger was created, with mode 600; or set {KEY_VARIABLE}"
        ) from None
    except (OSError, UnicodeDecodeError):
        raise LedgerError(f"the key of the ledger cannot be read: {path}") from None


def _read(text: str, where: str) -> bytes:
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise LedgerError(f"{where} does not hold a key: {2 * KEY_BYTES} hexadecimal digits")
    return key


def _write(path: Path) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(file, f"{secrets.token_hex(KEY_BYTES)}\n".encode())
            os.fsync(file)
        finally:
            os.close(file)
    except OSError as fault:
        raise LedgerError(f"the key of the ledger cannot be written to {path}: {fault.strerror}") from None

"""Opening a data set: config, ledger, data, and the engine on top of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from bursar.analysts.shares import EVERYONE, Shares
from bursar.config import Config, load
from bursar.core.budget import charter_of
from bursar.core.curator import declare_version
from bursar.core.ledger import Charter, SqliteLedger
from bursar.core.noise.system import SystemRandomness
from bursar.core.seals import PartitionAxis
from bursar.core.source.duckdb import DuckDBSource
from bursar.core.source.source import Source
from bursar.curate.ingest import found
from bursar.engine import Bursar
from bursar.errors import AnalystError, BursarError, LedgerError
from bursar.report.status import OWNER


def open(
    path: str | Path = "bursar.toml",
    *,
    analyst: str = OWNER,
    data: object | None = None,
    expect: tuple[int, str] | None = None,
) -> Bursar:
    """The data set that a config describes. Its ledger must exist: a new ledger would be a new budget.

    `data` is a data frame (pandas, polars, Arrow) to use instead of the file that the config names. `expect` is the
    number of records and the head that `verify` printed once: an older ledger is then refused.
    """
    bursar = _opened(load(path), analyst, data, expect)
    declared, wanted = Shares(bursar.kernel.shares()), bursar.config.analysts.accounts
    if declared != wanted:
        bursar.close()
        raise LedgerError(
            f"the shares in {path} ({wanted}) are not those that the ledger keeps ({declared})\n"
            "try: if you own the data and the config is right, bursar shares"
        )
    bursar.seal_due()
    return bursar


def share(path: str | Path = "bursar.toml") -> Bursar:
    """For the data owner, after the shares in the config were changed: give them out."""
    bursar = _opened(load(path), OWNER, None, None)
    try:
        bursar.declare_shares()
    except BursarError:
        bursar.close()
        raise
    return bursar


def create(path: str | Path = "bursar.toml", *, data: object | None = None) -> Bursar:
    """For the data owner, once: begin a ledger with a full budget, and declare the data as they are now."""
    config = load(path)
    if data is None:
        found(config)
    source, randomness = _source(config, data), SystemRandomness()
    source(bytes(32)).close()  # data that cannot be read must not leave a ledger behind
    ledger = SqliteLedger.create(config.ledger_path, _charter(config))
    last = -1 if config.sealing.growing else config.domain.partitions - 1
    declare_version(ledger, source, randomness, axis=PartitionAxis.of(config.domain, config.unit), through=last)
    bursar = Bursar(config, ledger, open_source=source, randomness=randomness)
    bursar.declare_shares()
    bursar.seal_due()
    return bursar


def _opened(config: Config, analyst: str, data: object | None, expect: tuple[int, str] | None) -> Bursar:
    if analyst == EVERYONE:
        raise AnalystError(f'nobody can ask as "{EVERYONE}": it is the account that all analysts have in common')
    ledger = SqliteLedger.open(config.ledger_path, _charter(config), expect=expect)
    return Bursar(config, ledger, open_source=_source(config, data), randomness=SystemRandomness(), analyst=analyst)


def _charter(config: Config) -> Charter:
    return charter_of(dataset=config.dataset, **config.facts)


def _source(config: Config, data: object | None) -> Callable[[bytes], Source]:
    location, table, view = (config.location, config.table, config.view) if data is None else (data, None, None)

    def open_source(key: bytes) -> Source:
        facts: Any = {"key": key, "max_rows": config.max_rows, "table": table, "view": view}
        return DuckDBSource(location, config.domain, config.unit, **facts)

    return open_source

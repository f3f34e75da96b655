"""Opening a data set: config, ledger, data, and the engine on top of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bursar.config import Config, load
from bursar.engine import Bursar
from bursar.kernel.budget import charter_of
from bursar.kernel.curator import declare_version
from bursar.kernel.ledger import Charter, SqliteLedger
from bursar.kernel.randomness import SystemRandomness
from bursar.kernel.sources.duckdb import DuckDBSource
from bursar.kernel.sources.source import Source


def open(path: str | Path = "bursar.toml", *, analyst: str = "owner", expect: tuple[int, str] | None = None) -> Bursar:
    """The data set that a config describes. Its ledger must exist: a new ledger would be a new budget.

    `expect` is the number of records and the head that `verify` printed once: an older ledger is then refused.
    """
    config = load(path)
    ledger = SqliteLedger.open(config.ledger_path, _charter(config), expect=expect)
    return Bursar(config, ledger, open_source=_source(config), randomness=SystemRandomness(), analyst=analyst)


def create(path: str | Path = "bursar.toml") -> Bursar:
    """For the data owner, once: begin a ledger with a full budget, and declare the data as they are now."""
    config = load(path)
    _source(config)(bytes(32)).close()  # data that cannot be read must not leave a ledger behind
    ledger = SqliteLedger.create(config.ledger_path, _charter(config))
    randomness = SystemRandomness()
    declare_version(ledger=ledger, open_source=_source(config), randomness=randomness)
    return Bursar(config, ledger, open_source=_source(config), randomness=randomness)


def _charter(config: Config) -> Charter:
    return charter_of(
        dataset=config.dataset,
        domain=config.domain,
        unit=config.unit,
        budget=config.budget,
        max_rows=config.max_rows,
    )


def _source(config: Config) -> Callable[[bytes], Source]:
    def open_source(key: bytes) -> Source:
        return DuckDBSource(
            config.location, config.domain, config.unit, key=key, max_rows=config.max_rows, table=config.table
        )

    return open_source

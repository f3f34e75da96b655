"""What a data set of 10^9 people in 10^4 partitions costs: `python -m benchmarks.scale [--quick] [--postgresql URL]`.

The arithmetic of docs/deploy.md, checked: a real engine over made-up counts (the database is not what is measured), a
ledger on disk, questions about windows of days. `predicted` is what the page's formulas say. Columns: what is stored in
the ledger for each partition and each paid question, in bytes; what is held in memory; seconds to create, to open, and
for a question. `--quick` takes 10^3 partitions. With a URL the ledger is in that PostgreSQL database instead of a file.
"""

from __future__ import annotations

import secrets
import tempfile
import time
from datetime import date, timedelta
from pathlib import Path

import numpy as np

from benchmarks.harness import Figures, options, peak_mb, report
from bursar.config import Config
from bursar.config.ledger import LedgerSettings
from bursar.core.budget import Budget
from bursar.core.domain import Categories, Dates, Domain, IntegerRange, Period, Unit
from bursar.core.extensions.curator import declare_version
from bursar.core.extensions.partitions import PartitionAxis
from bursar.core.ledger import Ledger
from bursar.core.noise.system import SystemRandomness
from bursar.core.source.source import Source
from bursar.ledgers import create_ledger, open_ledger
from bursar.planner.choose import Preset
from bursar.proposers.direct import Direct
from bursar.proposers.reuse import Exact
from bursar.session import Bursar
from bursar.testing import CountsSource

PEOPLE = 10**9
FIRST = date(2000, 1, 1)
WINDOW = 30
WITHIN = 100_000.0

PER_PARTITION = {"file": 160, "postgresql": 400}
"""Predicted bytes on disk for a sealed partition: the digest of its content, a name twice, a seal; and indexes."""

PER_QUESTION, PER_GROUP = 1_750, 90
"""Predicted bytes of a paid question with a key, and of each of its groups: record, strategy, answer, claim, text."""

FILLED = {"file": 3.0, "postgresql": 1.5}
"""Predicted ratio of what that takes on disk: rows of this size leave much of SQLite's pages empty."""


def domain_of(partitions: int) -> Domain:
    last = FIRST + timedelta(days=partitions - 1)
    day = Dates(name="day", first=FIRST, last=last, by=Period.DAY)
    region = Categories(name="region", values=tuple(f"r{n}" for n in range(18)), outside=0, null=0)
    return Domain((day, IntegerRange(name="age", lower=0, upper=9, null=0), region), partition="day")


def config_of(folder: Path, partitions: int, url: str | None) -> Config:
    facts = {"dataset": "scale", "domain": domain_of(partitions), "unit": Unit(), "budget": Budget.of(epsilon=10.0)}
    places = {"path": folder / "scale.toml", "location": folder / "scale", "table": "people"}
    settings = LedgerSettings(url=url, schema=f"scale {secrets.token_hex(4)}")
    return Config(**places, **facts, max_rows=10 * PEOPLE, ledger=settings)  # type: ignore[arg-type]


def bytes_of(config: Config, ledger: Ledger) -> int:
    """What the ledger takes on disk."""
    if config.ledger.url is None:
        ledger.recover()  # moves the write-ahead log into the file
        return config.ledger_path.stat().st_size
    import psycopg

    sizes = (
        "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind = 'r'"
    )
    with psycopg.connect(config.ledger.url) as connection:
        ((size,),) = connection.execute(sizes.encode(), (f'"{config.ledger.schema}"',)).fetchall()
    return int(size)


def question(number: int, partitions: int) -> str:
    """A question about a window of days, different from all before it."""
    start = (7 * number) % max(partitions - WINDOW, 1)
    first, last = (FIRST + timedelta(days=start + shift) for shift in (0, WINDOW - 1 - number % 7))
    where = f"day BETWEEN DATE '{first}' AND DATE '{last}' AND age <= {number % 9}"
    return f"SELECT region, COUNT(*) FROM people WHERE {where} GROUP BY region"


def measured(folder: Path, partitions: int, questions: int, url: str | None) -> Figures:
    config = config_of(folder, partitions, url)
    domain = config.domain
    shape = domain.sizes(domain.names)
    counts = np.full(shape, PEOPLE // int(np.prod(shape)), np.int64)
    axis = PartitionAxis.of(domain, config.unit)

    def open_source(key: bytes) -> Source:
        return CountsSource(counts, domain)

    def opened(ledger: Ledger) -> Bursar:
        preset = Preset("direct", (Exact(), Direct()))
        return Bursar(config, ledger, open_source=open_source, randomness=SystemRandomness(), preset=preset)

    start = time.perf_counter()
    ledger = create_ledger(config)
    empty = bytes_of(config, ledger)
    declare_version(ledger, open_source, SystemRandomness(), axis=axis, through=domain.partitions - 1)
    created = time.perf_counter() - start
    sealed = bytes_of(config, ledger)
    ledger.close()
    start = time.perf_counter()
    with opened(open_ledger(config)) as bursar:
        opening = time.perf_counter() - start
        start = time.perf_counter()
        rows = len(bursar.query(question(0, partitions), within=WITHIN, key="first").rows)
        first = time.perf_counter() - start
        start = time.perf_counter()
        for number in range(1, questions + 1):
            bursar.query(question(number, partitions), within=WITHIN, key=f"question {number}")
        each = (time.perf_counter() - start) / questions
        records = len(bursar.ledger.records())
        stored = bytes_of(config, bursar.ledger) - sealed
    per_question = stored / (questions + 1)
    kind = "file" if url is None else "postgresql"
    predicted = FILLED[kind] * (PER_QUESTION + PER_GROUP * rows)
    return {
        "ledger, bytes per partition": {
            "measured": (sealed - empty) / partitions,
            "predicted": PER_PARTITION[kind],
            "ratio": (sealed - empty) / partitions / PER_PARTITION[kind],
        },
        "ledger, bytes per paid question": {
            "measured": per_question,
            "predicted": predicted,
            "ratio": per_question / predicted,
        },
        "counts in memory, MB": {
            "measured": counts.nbytes / 2**20,
            "predicted": 8 * float(np.prod(shape)) / 2**20,
            "ratio": counts.nbytes / (8 * float(np.prod(shape))),
        },
        "create and seal all, s": {"measured": created},
        "open, s": {"measured": opening},
        "first question, s": {"measured": first},
        "next questions, s": {"measured": each},
        "records": {"measured": records},
        "peak of the process, MB": {"measured": peak_mb()},
    }


def main() -> None:
    args = options(__doc__ or "", postgresql={"default": None, "metavar": "URL", "help": "a database for the ledger"})
    partitions, questions = (1_000, 100) if args.quick else (10_000, 500)
    with tempfile.TemporaryDirectory() as name:
        figures = measured(Path(name), partitions, questions, args.postgresql)
    report("scale", args, figures)


if __name__ == "__main__":
    main()

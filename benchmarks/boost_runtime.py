"""Boost's Fig. 10 (d), from SQL text to answer: `python -m benchmarks.boost_runtime [--quick] [--seeds 0] [--out DIR]`.

One block of Covid stands in a real PostgreSQL as 1,008,532 rows (a tenth with --quick), the ledger is an SQLite file,
and questions are drawn as in the paper (zipf 1). Milliseconds of wall clock per question, by the way it went: `exact`
had been asked before, `passed` was answered by the histogram (R1), `failed` by fresh noise after a test (R2), `bypass`
by fresh noise without one (R3); for presets of Bursar's own, `bought` and `reused`. `cold` is the first question of a
new process over data that nobody has counted yet, with opening them; `again` the same in a second process. `bare` is
what PostgreSQL takes for one such count over the raw rows.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import mean, median

import numpy as np
from numpy.typing import NDArray

import bursar
from benchmarks.boost_data import Blocks, covid
from benchmarks.boost_questions import Pool, covid_pool, single
from benchmarks.harness import Figures, options, report
from benchmarks.sheet import COLOURS, sheet
from bursar.answer import Answer
from bursar.core.accounting import Failed
from bursar.core.ledger import Record

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))  # how servers are started is known there

ALPHA, CONFIDENCE = 5, 99.9
"""The goal of the paper: an error of 5 % of the rows, but for one answer in a thousand."""

PRESETS = ("boost", "boost-cold", "default")
WAYS = ("cold", "again", "exact", "passed", "failed", "bypass", "reused", "bought")
BARE_TIMES = 5

CONFIG = """
dataset = "covid"
{preset}

[source]
url = "{url}"
table = "covid"
max_rows = {most}
public_size = {rows}

[privacy]
unit = "row"
neighbours = "replace-one"

[budget]
epsilon = 10.0

{columns}
"""


def where(pool: Pool, query: int) -> str:
    """The condition of a query of the pool."""
    tests = []
    for name, size, subset in zip(pool.columns, pool.shape, pool.subsets[query], strict=True):
        values = [str(value) for value in range(size) if subset >> value & 1]
        if len(values) < size:
            tests.append(f"{name} IN ({', '.join(values)})")
    return " AND ".join(tests) or "TRUE"


def text(pool: Pool, query: int) -> str:
    """A query of the pool as an analyst would type it."""
    return f"SELECT COUNT(*) FROM covid WHERE {where(pool, query)} WITH ERROR {ALPHA}% CONFIDENCE {CONFIDENCE}%"


@contextmanager
def table_in_postgresql(blocks: Blocks, counts: NDArray[np.int64]) -> Iterator[str]:
    """The url of a server with the rows of one block, and of the role that may only read them."""
    from harness import servers

    settings = {"fsync": "off", "max_wal_size": "'4GB'", "shared_buffers": "'256MB'"}
    cells = np.argwhere(counts.reshape(blocks.shape) > 0)
    listed = ", ".join(f"({', '.join(map(str, cell))}, {counts.reshape(blocks.shape)[tuple(cell)]})" for cell in cells)
    names = ", ".join(blocks.columns)
    with servers.postgresql(settings) as server:
        servers.administer(
            server.url(),
            f"CREATE TABLE covid AS SELECT {names} FROM (VALUES {listed}) AS cells({names}, people), "
            "LATERAL generate_series(1, people)",
            f"CREATE ROLE reader LOGIN PASSWORD '{servers.PASSWORD}'; GRANT SELECT ON covid TO reader",
            "VACUUM ANALYZE covid",
        )
        os.environ["BURSAR_SOURCE_PASSWORD"] = servers.PASSWORD
        yield server.url(user="reader")


def config(folder: Path, url: str, preset: str, blocks: Blocks, rows: int) -> Path:
    sizes = zip(blocks.columns, blocks.shape, strict=True)
    columns = [f"[columns.{name}]\nlower = 0\nupper = {size - 1}\nnull = {{ as = 0 }}\n" for name, size in sizes]
    named = "" if preset == "default" else f'preset = "{preset}"'
    path = folder / f"{preset}.toml"
    path.write_text(CONFIG.format(preset=named, url=url, most=2 * rows, rows=rows, columns="\n".join(columns)))
    return path


def way(answer: Answer, new: Sequence[Record], before: bool) -> str:
    """Which way a question went, by the names of the paper where it has one."""
    if before:
        return "exact"
    if answer.source == "pmw" and any(isinstance(record.event, Failed) for record in new):
        return "failed"
    if answer.source == "pmw":
        return "passed" if "tested" in answer.note else "bypass"
    return "reused" if answer.free else "bought"


def played(path: Path, pool: Pool, questions: Sequence[int]) -> dict[str, float]:
    """Milliseconds per question by the way it went, and how many went there."""
    took: defaultdict[str, list[float]] = defaultdict(list)
    seen: set[int] = set()
    start = time.perf_counter()
    with bursar.create(path) as db:
        logged = 0
        for query in questions:
            before = time.perf_counter()
            answer = db.query(text(pool, query))
            spent = 1000 * (time.perf_counter() - before)
            new = db.engine.records(logged)
            logged = new[-1].position if new else logged
            if seen:
                took[way(answer, new, query in seen)].append(spent)
            else:
                cold = 1000 * (time.perf_counter() - start)
            seen.add(query)
    start = time.perf_counter()
    with bursar.open(path) as db:
        assert db.query(text(pool, questions[0])).free
    again = 1000 * (time.perf_counter() - start)
    told = {name: value for each in sorted(took) for name, value in _of(each, took[each]).items()}
    return {"cold": cold, "again": again, **told}


def _of(name: str, took: Sequence[float]) -> dict[str, float]:
    return {name: mean(took), f"{name}_n": len(took)}


def draw(file: Path, figures: Figures) -> None:
    """Bars as in the figure, one group for each preset."""
    shown = {name: row for name, row in figures.items() if name in PRESETS}
    with sheet(file, title="Boost Fig. 10 (d): milliseconds per question, by the way it went") as (axis,):
        labels = [(name, each) for name, row in shown.items() for each in WAYS if each in row]
        names, times = [f"{name}: {each}" for name, each in labels], [shown[name][each] for name, each in labels]
        axis.barh(names, times, color=[COLOURS[name] for name, _ in labels])
        axis.tick_params(axis="y", labelsize=7)
        axis.axvline(figures["bare"]["bare"], color="tab:gray", linestyle=":", label="one bare count in PostgreSQL")
        axis.set(xscale="log", xlabel="ms")
        axis.invert_yaxis()


def main() -> None:
    """Play the same questions before every preset."""
    args = options(__doc__ or "")
    blocks, pool = covid(1), covid_pool()
    counts = blocks.counts[0] // 10 if args.quick else blocks.counts[0]
    questions = [query for query, *_ in single(len(pool), 1.0, 300 if args.quick else 3000, args.seeds[0])]
    figures: Figures = {}
    with table_in_postgresql(blocks, counts) as url, tempfile.TemporaryDirectory(prefix="runtime-") as folder:
        for preset in PRESETS:
            path = config(Path(folder), url, preset, blocks, int(counts.sum()))
            figures[preset] = played(path, pool, questions)
        figures["bare"] = {"bare": bare(url, pool, questions[:BARE_TIMES])}
    if args.out is not None:
        args.out.mkdir(parents=True, exist_ok=True)
        draw(args.out / "boost-runtime.png", figures)
    report("boost/runtime", args, figures, data="real" if blocks.real else "stand-in")


def bare(url: str, pool: Pool, questions: Sequence[int]) -> float:
    """Milliseconds of counting raw rows, the median of a few questions."""
    import psycopg

    took = []
    with psycopg.connect(url, password=os.environ["BURSAR_SOURCE_PASSWORD"]) as connection:
        for query in questions:
            start = time.perf_counter()
            connection.execute(f"SELECT COUNT(*) FROM covid WHERE {where(pool, query)}".encode()).fetchone()
            took.append(1000 * (time.perf_counter() - start))
    return median(took)


if __name__ == "__main__":
    main()

"""How fast answers can be charged and kept: `python -m benchmarks.ledger [--quick] [--out DIR]`.

An answer is charged and keyed: one commit admits it, draws the noise and records it, another one stores the answer
under its key; both are synced to disk before anybody sees a number. Every question is paid for (the preset only
measures), from a pool of different ones. `kernel` rows begin with a plan in hand, so they time admission, noise, log
and keys; `engine` rows begin with SQL text. Threads of one process share disk writes (group commit); processes do
not, and each of them reads what all others bought. `one by one` is without group commit: every work has a disk write
of its own; `in no order` is without the line in which processes wait for the file. `p99_over_p50` says how unequal
waits are, `least_over_most` how unequal the numbers of answers. `ratio` compares with bare SQLite commits, one thread
and one small row each, in the same run and folder. `engine, 2 processes` are questions from SQL text, fresh ones and
free ones that were asked before, with one process for each of two cores. With `--postgresql URL` the rows with threads
are repeated on a ledger in that database.

Targets: `kernel, 64 threads` at least 500 a second with a p99 of at most 250 ms; a million records verified in 60 s.
"""

from __future__ import annotations

import math
import multiprocessing
import secrets
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Figures, options, report
from bursar.config import Config
from bursar.core.accounting import Measured, Noise, NoiseKind
from bursar.core.budget import Budget
from bursar.core.domain import Domain, IntegerRange, Unit
from bursar.core.extensions.curator import declare_version
from bursar.core.ledger import Ledger, PostgresLedger, PostgresPlace, Purpose, SqliteLedger, Transaction, transaction
from bursar.core.ledger.write_order import WriteOrder
from bursar.core.noise.system import SystemRandomness
from bursar.core.source.source import Source
from bursar.planner.choose import Preset
from bursar.planner.goals import Wanted
from bursar.planner.grant import Grant, new_claim
from bursar.proposers.direct import Direct
from bursar.session import Bursar
from bursar.testing import CountsSource

DOMAIN = Domain(tuple(IntegerRange(name=name, lower=0, upper=9, null=0) for name in ("a", "b", "c")))
QUESTIONS = [
    f"SELECT COUNT(*) FROM people WHERE a BETWEEN {low} AND {high} AND b <= {b}"
    for low, high, b in product(range(5), range(4, 10), range(10))
]
"""All of them look at one cell, a = 4 and b = 0, so that none is free beside the others."""

WITHIN = 400.0
PROCESSES, CORES = 64, 2
ORDERS = ("", ", in no order")
FREE = ", free"

Times = list[float]


def table() -> CountsSource:
    """Counts in memory: the database is not what is timed here."""
    return CountsSource(np.full(DOMAIN.sizes(DOMAIN.names), 10, np.int64), DOMAIN, content="")


def configured() -> Config:
    facts = {"dataset": "ledger", "domain": DOMAIN, "unit": Unit(), "budget": Budget.of(epsilon=1000.0)}
    places = {"path": Path("ledger.toml"), "location": Path("ledger"), "table": "people"}
    return Config(**places, **facts, max_rows=10**6)  # type: ignore[arg-type]


DIRECT = Preset("direct-only", (Direct(),))


def opened(place: Path, url: str | None = None, *, preset: Preset | None = DIRECT) -> Bursar:
    """An engine on the ledger at this place, or in this database, which is created if it is not there."""
    config = configured()
    randomness = SystemRandomness()
    charter = config.charter

    def open_source(key: bytes) -> Source:
        return table()

    ledger: Ledger
    if url is not None:
        schema = f"benchmark {secrets.token_hex(4)}"
        where = PostgresPlace(url=url, schema=schema, anchor=place, key=secrets.token_bytes(32), busy_timeout=120.0)
        ledger = PostgresLedger.create(where, charter)
        declare_version(ledger=ledger, open_source=open_source, randomness=randomness)
    elif place.exists():
        ledger = SqliteLedger.open(place, charter, busy_timeout=120.0)
    else:
        ledger = SqliteLedger.create(place, charter, busy_timeout=120.0)
        declare_version(ledger=ledger, open_source=open_source, randomness=randomness)
    return Bursar(config, ledger, open_source=open_source, randomness=randomness, preset=preset)


# -- what is timed ------------------------------------------------------------------------------------------


def bare_commits(folder: Path, commits: int) -> Times:
    """Seconds of each commit of one small row, with the ledger's settings."""
    connection = sqlite3.connect(folder / "bare.sqlite", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE log (position INTEGER PRIMARY KEY, body BLOB)")
    times = []
    for _ in range(commits):
        start = time.perf_counter()
        connection.execute("INSERT INTO log (body) VALUES (?)", (bytes(200),))
        times.append(time.perf_counter() - start)
    connection.close()
    return times


def engine_answer(bursar: Bursar) -> Callable[[str, int], None]:
    def answer(key: str, number: int) -> None:
        assert not bursar.query(QUESTIONS[number % len(QUESTIONS)], within=WITHIN, key=key).free

    return answer


def free_answer(bursar: Bursar) -> Callable[[str, int], None]:
    """Questions that were bought before."""

    def answer(key: str, number: int) -> None:
        bursar.query(QUESTIONS[number % 20], within=2 * WITHIN)

    for number in range(20):
        answer("", number)
    return answer


def kernel_answer(bursar: Bursar) -> Callable[[str, int], None]:
    """Plans are made beforehand; each is carried out as often as its question is asked."""
    wanted = Wanted(within=WITHIN)
    offers = [bursar.engine.planner.choose(bursar.engine.prepare(text, wanted, None)) for text in QUESTIONS[::30]]
    body = bursar.query(QUESTIONS[0], within=WITHIN).to_bytes()

    def answer(key: str, number: int) -> None:
        offer = offers[number % len(offers)]
        claim = new_claim(SystemRandomness(), analyst="ana", key=key, question="asked before", now=time.time())
        with Grant(bursar.kernel, "ana", "asked before", offer.price.events, offer.price.at_most, claim) as grant:
            offer.run(grant)
            grant.store(body)

    return answer


def from_threads(answer: Callable[[str, int], None], name: str, threads: int, seconds: float) -> Times:
    """Seconds of each answer while so many threads ask one question after the other for a while."""
    begin = threading.Barrier(threads)

    def client(thread: int) -> Times:
        times: Times = []
        answer(f"{name} {thread} first", thread)  # opens connections and imports what is imported late
        begin.wait()
        end = time.perf_counter() + seconds
        while (before := time.perf_counter()) < end:
            answer(f"{name} {thread} {len(times)}", thread + threads * len(times))
            times.append(time.perf_counter() - before)
        return times

    with ThreadPoolExecutor(threads) as pool:
        return [each for times in pool.map(client, range(threads)) for each in times]


def one_engine(place: Path, number: int, seconds: float, begin: Any, results: Any) -> None:
    """One of few processes that ask with SQL text, fresh questions and then free ones."""
    for note, made, preset in (("", engine_answer, DIRECT), (FREE, free_answer, None)):
        with opened(place, preset=preset) as bursar:
            answer = made(bursar)
            begin.wait()
            cpu = time.process_time()
            times = from_threads(answer, f"engine {number}{note}", 1, seconds)
            results.put((note, times, time.process_time() - cpu))


def one_process(place: Path, number: int, seconds: float, begin: Any, results: Any) -> None:
    with opened(place) as bursar:
        answer = kernel_answer(bursar)
        answer(f"process {number}", number)
        for note in ORDERS:
            if note:
                WriteOrder.wait = lambda *_: None  # type: ignore[method-assign]
            begin.wait()
            cpu = time.process_time()
            times = from_threads(answer, f"process {number}{note}", 1, seconds)
            results.put((note, times, time.process_time() - cpu))


def from_processes(
    place: Path, processes: int, seconds: float, bare: float, *, kind: str = "kernel", notes: Sequence[str] = ORDERS
) -> Figures:
    """The rows of many processes: with and without the line, or fresh and free."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["bursar.engine"])
    begin, results = context.Barrier(processes), context.Queue()
    facts = [(place, number, seconds, begin, results) for number in range(processes)]
    work = one_process if kind == "kernel" else one_engine
    children = [context.Process(target=work, args=each) for each in facts]
    for child in children:
        child.start()
    told = [results.get() for _ in children for _ in notes]
    for child in children:
        child.join()
    figures: Figures = {}
    for note in notes:
        runs = [(times, cpu) for which, times, cpu in told if which == note]
        times = [each for times, _ in runs for each in times]
        row = figures_of(times, processes, bare, sum(cpu for _, cpu in runs))
        numbers = [len(times) for times, _ in runs]
        unequal = {"p99_over_p50": row["p99_ms"] / row["p50_ms"], "least_over_most": min(numbers) / max(numbers)}
        figures[f"{kind}, {processes} processes{note}"] = row | unequal
    return figures


def verified(place: Path, records: int) -> dict[str, float]:
    """Fill a ledger as if so many measurements had been bought, and verify it from a process that knows nothing."""
    with opened(place) as bursar:
        maps = [bursar.engine.prepare(text, Wanted(within=WITHIN), None).workload.map for text in QUESTIONS]
        noise = Noise(kind=NoiseKind.LAPLACE, scale=2.0**30)

        def fill(works: Transaction) -> None:
            for number in range(10_000):
                event = Measured(strategy=maps[number % len(maps)], noise=noise, version=1)
                values = np.array([number], np.int64)
                works.append(analyst="past", purpose=Purpose(QUESTIONS[0], "test"), event=event, values=values)

        for _ in range(records // 10_000):
            bursar.ledger.commit(fill)
    with opened(place) as bursar:
        start = time.perf_counter()
        health = bursar.owner.verify()
        took = time.perf_counter() - start
    return {"records": health.records, "seconds": took, "per_s": health.records / took}


def figures_of(times: Times, clients: int, bare: float, cpu: float = math.nan) -> dict[str, float]:
    """Every client asks all the time, so they get clients / mean answers a second."""
    rate = clients / float(np.mean(times))
    p50, p99 = np.quantile(times, [0.5, 0.99]) * 1000
    known = {} if math.isnan(cpu) else {"cpu_ms": 1000 * cpu / len(times)}
    return {"per_s": rate, "p50_ms": p50, "p99_ms": p99, **known, "ratio": rate / bare}


def with_threads(bursar: Bursar, seconds: float, bare: float) -> Figures:
    """The rows of one process, with and without group commit."""
    figures: Figures = {}
    group = transaction.LARGEST_GROUP
    for size, note in ((group, ""), (1, ", one by one")):
        transaction.LARGEST_GROUP = size
        for kind, answer in (("kernel", kernel_answer(bursar)), ("engine", engine_answer(bursar))):
            for threads in (1, 16, 64) if size == group else (64,):
                cpu = time.process_time()
                times = from_threads(answer, f"{kind} {threads}{note}", threads, seconds)
                cpu = time.process_time() - cpu
                figures[f"{kind}, {threads} threads{note}"] = figures_of(times, threads, bare, cpu)
    transaction.LARGEST_GROUP = group
    return figures


def main() -> None:
    args = options(__doc__ or "", postgresql={"default": None, "metavar": "URL", "help": "a database for a ledger"})
    seconds, commits, records = (2.0, 500, 100_000) if args.quick else (15.0, 3000, 1_000_000)
    figures: Figures = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        times = bare_commits(folder, commits)
        bare = len(times) / sum(times)
        figures["bare SQLite commits"] = figures_of(times, 1, bare)
        for where, url in {"": None, ", PostgreSQL": args.postgresql}.items():
            if where == "" or url is not None:
                with opened(folder / f"threads{where}.sqlite", url) as bursar:
                    for name, row in with_threads(bursar, seconds, bare).items():
                        figures[f"{name}{where}"] = row
        opened(folder / "processes.sqlite").close()
        figures |= from_processes(folder / "processes.sqlite", PROCESSES, seconds, bare)
        opened(folder / "cores.sqlite").close()
        asked = {"kind": "engine", "notes": ("", FREE)}
        figures |= from_processes(folder / "cores.sqlite", CORES, seconds, bare, **asked)  # type: ignore[arg-type]
        figures["verify"] = verified(folder / "long.sqlite", records)
    report("ledger", args, figures)


if __name__ == "__main__":
    main()

"""How time grows with everything that can grow: the log, groups, columns, questions of a batch, partitions.

Each figure is CPU time as a ratio to that of the smallest size of the same run, so a loaded machine matters little.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import bursar
from benchmarks.harness import Figures
from bursar.config import Config
from bursar.core.accounting import Measured, Noise, NoiseKind
from bursar.core.budget import Budget
from bursar.core.domain import Domain, IntegerRange, Unit
from bursar.core.ledger import Purpose, Transaction
from bursar.core.queries import Mask, Product, Steps
from bursar.session import Bursar
from bursar.testing import EmptySource, stage
from bursar.views.question_notes import AskedQuestion

COARSE = Noise(kind=NoiseKind.LAPLACE, scale=2.0**20)
FREE = "SELECT sex, COUNT(*) FROM people GROUP BY sex WITH ERROR 100"
AT_ONCE = 10_000
"""Records of one commit."""

STRIDE = 101
"""Ranges come in a mixed order; it has no divisor in common with their number."""

CONFIG = """
dataset = "core"
[source]
path = "people.csv"
table = "people"
max_rows = 10000
[privacy]
unit = "row"
[budget]
epsilon = 1000.0
[columns.age]
lower = 0
upper = 99
[columns.sex]
values = ["F", "M"]
[columns.region]
values = ["north", "south", "east", "west"]
"""

FRESH = [
    f"SELECT {name}, COUNT(*) FROM people WHERE age BETWEEN {low} AND {low + 9 + n} GROUP BY {name}"
    for n, (name, low) in enumerate(
        zip(5 * ["region", "sex", "sex, region"], range(20, 80, 4), strict=True)  # first looks come early
    )
]
"""Asked one after the other in a new process; each is paid for."""

ASK = """
import sys, time, bursar
for path in sys.argv[1:]:
    times = []
    with bursar.open(path) as db:
        for text in {questions!r}:
            start = time.process_time()
            db.query(text, within=300.0)
            times.append(time.process_time() - start)
print(times)
"""
"""Asks of each of several data sets; the first one loads what is imported late, and the times of the last are told."""

OPEN = "import bursar.session, resource, bursar; a = resource.getrusage(resource.RUSAGE_SELF); {work}; {tell}"
TELL = "b = resource.getrusage(resource.RUSAGE_SELF); print(b.ru_utime + b.ru_stime - a.ru_utime - a.ru_stime)"


def cpu_of(work: Callable[[], object]) -> float:
    """Seconds of CPU of this process."""
    start = time.process_time()
    work()
    return time.process_time() - start


def past_strategies(domain: Domain) -> list[Product]:
    """Ranges of ages, alone and by sex, by region or by both."""
    size = domain["age"].size
    ends = [(low, low + length) for length in (1, 7, 29) for low in range(98 - length)]
    ages = [Mask(("age",), (size,), Steps.ranges([low], [high], size)) for low, high in ends]
    others = [Mask((name,), domain.sizes((name,)), Steps.identity(domain[name].size)) for name in ("sex", "region")]
    crossed = [(), *((other,) for other in others), tuple(others)]
    return [Product((*some, ages[n * STRIDE % len(ages)])) for n in range(len(ages)) for some in crossed]


def folder_with_log(folder: Path, records: int) -> Path:
    """A data set with a log of so many records after a free question: ranges of ages, each the answer to a question.

    As in a long life, there were checkpoints on the way.
    """
    people = "".join(f"{n % 100},{'FM'[n % 2]},{('north', 'south', 'east', 'west')[n % 4]}\n" for n in range(1000))
    (folder / "people.csv").write_text(f"age,sex,region\n{people}")
    path = folder / "bursar.toml"
    path.write_text(CONFIG)
    with bursar.create(path) as db:
        db.query(FREE)
        domain, strategies, version = db.config.domain, past_strategies(db.config.domain), db.kernel.version()
        for start in range(0, records, AT_ONCE):
            some = range(start, min(start + AT_ONCE, records))
            events = [Measured(strategy=strategies[n % len(strategies)], noise=COARSE, version=version) for n in some]

            def work(transaction: Transaction, events: Sequence[Measured] = events) -> None:
                for event in events:
                    values = np.zeros(event.strategy.rows, np.int64)
                    transaction.append(analyst="past", purpose=Purpose("fill", "direct"), event=event, values=values)

            db.ledger.commit(work)
            db.engine.notes.add(
                *(
                    AskedQuestion(
                        analyst="past", columns=domain.ordered(event.strategy.attrs), plain=(event,), position=n
                    )
                    for n, event in zip(some, events, strict=True)
                )
            )
            db.owner.checkpoint()
    return path


def opening(path: Path) -> float:
    """Seconds of CPU to open a data set in a new process, and to see what is left; imports are not counted.

    Classes whose methods are written with the first instance are: most of it. A second opening takes a quarter.
    """
    work = f"db = bursar.open({str(path)!r}); db.budget()"
    program = OPEN.format(work=work, tell=TELL)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return float(run.stdout)


def cold(path: Path) -> float:
    """Seconds of CPU of a free `bursar query` in a new process, everything counted."""
    command = [sys.executable, "-c", "from bursar.cli import main; main()", "query", "-d", str(path), FREE]
    compiled = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}  # as installed
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, capture_output=True, check=True, env=compiled)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def fresh(path: Path, short: Path) -> dict[str, float]:
    """Seconds of CPU of the first fresh question of a new process, the median of those after it, and the worst.

    Asked of a copy, so that every run finds the same log. What is imported late was loaded by questions to a short log.
    """
    with tempfile.TemporaryDirectory() as folder:
        copies = [Path(shutil.copytree(each.parent, Path(folder) / str(n))) for n, each in enumerate((short, path))]
        program = [sys.executable, "-c", ASK.format(questions=FRESH), *(str(copy / path.name) for copy in copies)]
        run = subprocess.run(program, capture_output=True, text=True, check=True)
    first, *later = json.loads(run.stdout)
    return {"first_s": first, "next_s": statistics.median(later), "worst_s": max(later)}


def cold_figures(records: int = 10_000) -> dict[str, float]:
    """`cold_s`: a free `bursar query`; `open_s`: opening a log of so many records. The least of three each."""
    with tempfile.TemporaryDirectory() as short, tempfile.TemporaryDirectory() as long:
        few, many = folder_with_log(Path(short), 10), folder_with_log(Path(long), records)
        cold(few)  # compiles what is imported
        return {
            "cold_s": min(cold(few) for _ in range(3)),
            "open_s": min(opening(many) for _ in range(3)),
            "cold_long_s": min(cold(many) for _ in range(3)),
        }


def by_log(lengths: Sequence[int]) -> Figures:
    """Opening, a free answer in a new process, and fresh questions in one, by the length of the log."""
    figures: Figures = {}
    with tempfile.TemporaryDirectory() as few:
        short = folder_with_log(Path(few), 10)
        for records in lengths:
            with tempfile.TemporaryDirectory() as folder:
                path = folder_with_log(Path(folder), records)
                cold(path)
                known = {
                    "open_s": min(opening(path) for _ in range(3)),
                    "free_s": min(cold(path) for _ in range(3)),
                }
                figures[f"log of {records}"] = {**known, **fresh(path, short)}
                progress(f"a log of {records} records")
    return with_ratios(figures)


def progress(what: str) -> None:
    """Say on the way how far it is, to whoever waits for it."""
    print(f"  {time.process_time():6.0f} s of CPU: {what}", file=sys.stderr, flush=True)


def grown(name: str, work: Callable[[int], dict[str, float]], sizes: Sequence[int]) -> Figures:
    """The figures of each size, and their ratios; the smallest once before, which loads what is imported late."""
    work(sizes[0])
    figures: Figures = {}
    for size in sizes:
        figures[name.format(size)] = work(size)
        progress(name.format(size))
    return with_ratios(figures)


def with_ratios(figures: Figures) -> Figures:
    """Every figure also over that of the first line."""
    first = next(iter(figures.values()))
    return {name: {**row, **{f"{key} ratio": row[key] / first[key] for key in row}} for name, row in figures.items()}


def session_over(domain: Domain) -> Bursar:
    """A session in memory over a domain, without a row."""
    config = Config(
        path=Path("core.toml"),
        dataset="core",
        location=Path("core"),
        table="people",
        domain=domain,
        unit=Unit(),
        budget=Budget.of(epsilon=1000.0),
        max_rows=1_000_000,
    )
    return stage(config, lambda key: EmptySource(domain))


def asked(db: Bursar, question: str, **goal: float) -> dict[str, float]:
    """CPU of a question that is fresh, of the same again, and of the same asked by somebody else first; in ms."""
    fresh = cpu_of(lambda: db.query(question, **goal))
    again = min(cpu_of(lambda: db.query(question, **goal)) for _ in range(3))
    others = [db.as_analyst(name) for name in ("ana", "bob", "cleo")]
    known = min(cpu_of(lambda other=other: other.query(question, **goal)) for other in others)  # type: ignore[misc]
    return {"fresh_ms": 1000 * fresh, "again_ms": 1000 * again, "known_ms": 1000 * known}


def by_groups(size: int) -> dict[str, float]:
    """A GROUP BY with so many groups."""
    db = session_over(Domain((IntegerRange(name="zip", lower=0, upper=size - 1, null=0),)))
    return asked(db, "SELECT zip, COUNT(*) FROM people GROUP BY zip", within=100.0)


def by_columns(size: int) -> dict[str, float]:
    """A GROUP BY beside so many columns, each of which was asked about before."""
    names = [f"c{n:03}" for n in range(size)]
    db = session_over(Domain(tuple(IntegerRange(name=name, lower=0, upper=9, null=0) for name in names)))
    for name in names:
        db.query(f"SELECT {name}, COUNT(*) FROM people GROUP BY {name}", within=500.0)
    return asked(db, "SELECT c000, COUNT(*) FROM people WHERE c001 < 5 GROUP BY c000", within=100.0)


def by_batch(size: int) -> dict[str, float]:
    """A batch of so many ranges; per question."""
    db = session_over(Domain((IntegerRange(name="age", lower=0, upper=199, null=0),)))
    texts = [f"SELECT COUNT(*) FROM people WHERE age BETWEEN {n % 100} AND {100 + n // 100 % 100}" for n in range(size)]
    return {"ms_each": 1000 * cpu_of(lambda: db.batch(texts, within=200)) / size}


def by_partitions(size: int) -> dict[str, float]:
    """A question about all of so many partitions."""
    columns = (
        IntegerRange(name="day", lower=0, upper=size - 1, null=0),
        IntegerRange(name="age", lower=0, upper=9, null=0),
    )
    db = session_over(Domain(columns, partition="day"))
    return asked(db, "SELECT age, COUNT(*) FROM people GROUP BY age", within=500.0)


def everything() -> Figures:
    """All of it; the largest log takes minutes to write and to add up once."""
    figures: Figures = {}
    figures |= grown("{} groups", by_groups, (10, 100, 1_000, 10_000, 100_000, 1_000_000))
    figures |= grown("{} columns", by_columns, (10, 30, 100))
    figures |= grown("batch of {}", by_batch, (10, 100, 1_000, 10_000))
    figures |= grown("{} partitions", by_partitions, (10, 100, 1_000))
    figures |= by_log((1_000, 10_000, 100_000, 1_000_000))
    return figures

"""Counts the modules of Bursar that one question passes through: those of which at least one function runs.

    python tools/passed.py              how many, for each kind of question
    python tools/passed.py --list       and which, with how many of their functions

Each kind is done twice before it is counted, with other numbers, so that nothing is counted that is only imported, set
up, or, as the shape of a tree, worked out once in a process; nor are dataclasses counted that are written out when they
are first used (`lazy_dataclass.py`), which is a late part of their import. Functions that generators and comprehensions
are made of count as their functions do.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import bursar
from bursar.cli.app import app
from bursar.curate.demo import generate

SOURCE = f"{Path(bursar.__file__).parent}/"
NOT_COUNTED = f"{SOURCE}lazy_dataclass.py"
ROWS = 10_000
GROUP_BY = "SELECT region, COUNT(*) AS n FROM people WHERE age >= {} GROUP BY region WITH ERROR 300"


def passed(work: Callable[[], object]) -> dict[str, set[str]]:
    """The functions that run while something is done, by module."""
    modules: dict[str, set[str]] = defaultdict(set)

    def entered(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        file = code.co_filename
        if event == "call" and file.startswith(SOURCE) and code.co_name != "<module>" and file != NOT_COUNTED:
            modules[file.removeprefix(SOURCE)].add(code.co_qualname)

    threading.setprofile(entered)
    sys.setprofile(entered)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return modules


def kinds(config: Path) -> Iterator[tuple[str, Callable[[int], object]]]:
    """What is counted: each takes a number that makes it new."""

    def command(*words: str) -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            app([*words, "--data", str(config)], standalone_mode=False)

    with bursar.open(config) as session:
        yield "question", lambda age: session.query(GROUP_BY.format(age))
        yield "repeated", lambda _: session.query(GROUP_BY.format(60))
        yield "explain", lambda age: session.explain(GROUP_BY.format(age))
        yield (
            "batch",
            lambda age: session.batch(
                [GROUP_BY.format(age + 20), f"SELECT COUNT(*) FROM people WHERE hours > {age} WITH ERROR 300"]
            ),
        )
        yield "synthesize", lambda age: session.synthesize(marginals="sex,region; age,sex", spend=age / 1000)
    yield "bursar budget", lambda _: command("budget")


def counted() -> Iterator[tuple[str, dict[str, set[str]]]]:
    """What each kind passes through, over a data set of its own."""
    with tempfile.TemporaryDirectory() as folder:
        config = generate(Path(folder) / "people.csv", rows=ROWS)
        with bursar.create(config):
            pass
        for name, work in kinds(config):
            work(60)
            work(62)
            yield name, passed(lambda work=work: work(65))


def main(listed: bool) -> None:
    """Print the counts."""
    for name, modules in counted():
        print(f"{name:16}{len(modules):5} modules {sum(map(len, modules.values())):6} functions")
        for module, functions in sorted(modules.items()) if listed else ():
            print(f"    {len(functions):4}  {module}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="name the modules")
    main(parser.parse_args().list)

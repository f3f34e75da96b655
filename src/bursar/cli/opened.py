"""Data sets and files as commands open them."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bursar.errors import LedgerError, QueryError
from bursar.report import text as show

if TYPE_CHECKING:
    from bursar import Bursar, Remote


MOST_STDIN = 2**20


def opened(data: Path, analyst: str = "owner", expect: str | None = None, *, preset: str | None = None) -> Bursar:
    """The data set of a config; its ledger must be there."""
    with uncollected():
        import bursar.session
        from bursar.config import load

    config = load(data)
    ledger = config.ledger_path
    try:
        exists = config.ledger.url is not None or ledger.exists()
    except OSError as fault:
        raise LedgerError(f"the ledger {ledger} cannot be opened: {fault.strerror}") from None
    if not exists:
        raise LedgerError(
            f"{data} has no ledger yet, so there is no budget to spend\n"
            f"try: if you own the data, bursar create -d {data}, with --carry OLD.toml where another config about the "
            "same people has a ledger; otherwise ask their owner for the place of the ledger"
        )
    head = None if expect is None else _head(expect)
    session = bursar.open(data, analyst=analyst, expect=head, preset=chosen(preset))
    session.engine.queue.tell = show.waiting
    show.warnings(session.ledger.warnings)
    return session


@contextmanager
def uncollected() -> Iterator[None]:
    """No garbage is looked for in the block: imports make none, and to look takes a tenth of a free answer's time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def chosen(preset: str | None) -> str | None:
    """The preset of the command line, or that of the environment, which commands without the option know too."""
    return preset or os.environ.get(PRESET) or None


def reached(server: str | None, data: Path, analyst: str, preset: str | None = None) -> Bursar | Remote:
    """The data set of a server, where one is named; else that of a config."""
    if server is None:
        return opened(data, analyst, preset=preset)
    import bursar

    remote = bursar.connect(server)
    remote.tell = show.waiting
    return remote


def _head(text: str) -> tuple[int, str]:
    records, colon, head = text.partition(":")
    if not colon or not records.isascii() or not records.isdigit() or len(records) > 18:
        raise LedgerError(f"--expect takes the line that bursar verify printed, RECORDS:HASH, not {text!r}")
    return int(records), head


def read_file(name: str) -> str:
    """The text of a file, or of standard input for -."""
    if name == "-":
        return read(name)
    try:
        with Path(name).open(encoding="utf-8") as file:
            return file.read(MOST_STDIN)
    except (OSError, ValueError):
        raise QueryError(f"the file {name!r} cannot be read as text") from None


def read(sql: str) -> str:
    """A text, or standard input for -."""
    if sql != "-":
        return sql
    return "" if sys.stdin is None else sys.stdin.read(MOST_STDIN)


CONFIG = Path("bursar.toml")
ANALYST = "BURSAR_ANALYST"
"""Names who asks where --as does not."""

PRESET = "BURSAR_PRESET"

ChosenPreset = Annotated[
    str | None,
    typer.Option(
        "--preset",
        metavar="NAME",
        envvar=PRESET,
        help="The published system that answers, where the config does not name it; a ledger has one for life. bursar "
        "presets lists them.",
    ),
]
Data = Annotated[
    Path,
    typer.Option(
        "-d",
        "--data",
        metavar="CONFIG",
        envvar="BURSAR_CONFIG",
        help="The config file of the data set.",
        show_default=True,
    ),
]
Server = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        envvar="BURSAR_SERVER",
        help="Ask a server instead, https://HOST/DATA, under the name of the token in BURSAR_TOKEN; then --data and "
        "--as mean nothing.",
    ),
]
Analyst = Annotated[str, typer.Option("--as", metavar="NAME", envvar=ANALYST, help="Who asks; written into the log.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


PATIENCE_SECONDS = 2.0
"""Work that is done sooner needs no sign."""

STEP_SECONDS = 1.0


@contextmanager
def working(what: str) -> Iterator[Callable[[str], None]]:
    """A line that counts the seconds while the block runs, and is gone afterwards; the block may say what it does."""
    doing = [what]
    if sys.stderr is None or not sys.stderr.isatty():
        yield doing.append
        return
    done = threading.Event()
    counter = threading.Thread(target=_count, args=(doing, done), daemon=True)
    counter.start()
    try:
        yield doing.append
    finally:
        done.set()
        counter.join()


def _count(doing: list[str], done: threading.Event) -> None:
    start, pause, shown = time.monotonic(), PATIENCE_SECONDS, ""
    while not done.wait(pause):
        before, shown = shown, f"{doing[-1]}: {time.monotonic() - start:.0f} s"
        pause = STEP_SECONDS
        print(f"\r{shown:<{len(before)}}", end="", file=sys.stderr, flush=True)
    if shown:
        print(f"\r{' ' * len(shown)}\r", end="", file=sys.stderr, flush=True)


def progress(done: int, of: int) -> None:
    """A percentage, which is gone when the work is done."""
    if sys.stderr is not None and sys.stderr.isatty() and (done == of or done % max(of // 100, 1) == 0):
        end = "\r    \r" if done == of else ""
        print(f"\r{100 * done // of:3}%{end}", end="", file=sys.stderr, flush=True)


ELSEWHERE = "stopped; the server may still answer, and what that buys is kept: ask again, it is not paid twice"


class Stopped(Exception):
    """A question was stopped; the text says what was charged."""


class Watch:
    """Knows where the log ended before a question."""

    def __init__(self, bursar: Bursar | Remote) -> None:
        self._bursar = bursar
        self._position = 0

    @contextmanager
    def over(self, question: str) -> Iterator[None]:
        """Turns Ctrl-C inside the block into `Stopped`. What the ledger says is what counts, so it is asked.

        What a server has begun it ends, so there is nothing to ask there yet.
        """
        from bursar.session import Bursar

        here = self._bursar if isinstance(self._bursar, Bursar) else None
        if here is not None:
            self._position = here.kernel.position()
        try:
            yield
        except KeyboardInterrupt:
            raise Stopped(ELSEWHERE if here is None else self._charged(here, question)) from None

    def _charged(self, bursar: Bursar, question: str) -> str:
        unit = bursar.budget().unit  # looking is a commit of its own, behind any that was still under way
        new = bursar.log(bursar.kernel.position() - self._position, of=bursar.analyst)
        paid = sum(line.paid for line in new if line.position > self._position and line.purpose == question)
        if paid == 0:
            return "stopped; nothing was charged"
        return f"stopped; {unit} {paid:.6g} was charged, and what it bought is kept: ask again, it is not paid twice"

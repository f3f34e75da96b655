"""The command line. Commands are in `app.py`, what they print in the room `report`, the guided tour in `tour.py`."""

from __future__ import annotations

import io
import sys
from copy import copy
from typing import TYPE_CHECKING

from bursar.cli.opened import Stopped, uncollected
from bursar.errors import BursarError

if TYPE_CHECKING:
    from typer import Typer

STOPPED = 130
"""What shells call a program that was stopped by Ctrl-C."""


def main() -> None:
    """Run one command. Exit codes: 0 done, 2 bad input, 3 over budget, 4 data or ledger, 5 not your turn."""
    with uncollected():
        from bursar.cli.app import app

    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal without ± must not hide an answer that was paid for, and a question may be any bytes.
            stream.reconfigure(errors="replace")
    try:
        _with_what_was_named(app)(prog_name="bursar")
    except BursarError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
    except Stopped as stop:
        print(f"\n{stop}", file=sys.stderr)
        sys.exit(STOPPED)


def _with_what_was_named(app: Typer) -> Typer:
    """With one command, if one was named: to make the thirty others ready takes a good part of a free answer's time."""
    asked, commands = sys.argv[1:2], app.registered_commands
    named = [one for one in commands if one.callback is not None and asked == [one.name or one.callback.__name__]]
    few = copy(app)
    few.registered_commands = named or commands
    return few

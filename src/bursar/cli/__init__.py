"""The command line. Commands are in `app.py`, what they print in the room `report`, the guided tour in `tour.py`."""

from __future__ import annotations

import io
import sys

from bursar.cli.opened import Stopped
from bursar.errors import BursarError

STOPPED = 130
"""What shells call a program that was stopped by Ctrl-C."""


def main() -> None:
    """Run one command. Exit codes: 0 done, 2 bad input, 3 over budget, 4 data or ledger, 5 not your turn."""
    from bursar.cli.app import app

    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal without ± must not hide an answer that was paid for, and a question may be any bytes.
            stream.reconfigure(errors="replace")
    try:
        app(prog_name="bursar")
    except BursarError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
    except Stopped as stop:
        print(f"\n{stop}", file=sys.stderr)
        sys.exit(STOPPED)

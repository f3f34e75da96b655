"""The command line. Commands are in `app.py`, what they print in the room `report`, the guided tour in `tour.py`."""

from __future__ import annotations

import io
import sys
from copy import copy
from inspect import getdoc
from typing import TYPE_CHECKING

from bursar.cli.opened import Stopped, uncollected
from bursar.errors import BursarError

if TYPE_CHECKING:
    from typer import Typer
    from typer.models import CommandInfo

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
    """With as much of the commands as is needed: to read the options of all of them takes most of the time of --help.

    One command, if one was named; the names and helps of all, if these are what is asked for.
    """
    few, words = copy(app), sys.argv[1:]
    if words in ([], ["--help"]):
        few.registered_commands = [_without_options(command) for command in app.registered_commands]
    elif named := [command for command in app.registered_commands if _called(command) == words[0]]:
        few.registered_commands, few.registered_groups = named, []
    return few


def _called(command: CommandInfo) -> str | None:
    return command.name or (command.callback and command.callback.__name__.replace("_", "-"))


def _without_options(command: CommandInfo) -> CommandInfo:
    """A command to be listed, not run."""
    listed = copy(command)
    listed.name, listed.help = _called(command), command.help or getdoc(command.callback)
    listed.callback = lambda: None
    return listed

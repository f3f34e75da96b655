"""What the commands print about waiting in turn."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import typer

from bursar.errors import Waiting

if TYPE_CHECKING:
    from bursar.analysts.queue import QueueStatus


def waiting(situation: str) -> None:
    """On standard error, since an answer is still to come."""
    print(f"waiting: {situation}", file=sys.stderr, flush=True)


@contextmanager
def ticket(*, as_json: bool) -> Iterator[None]:
    """Programs get a ticket as JSON; the exit code is the same."""
    try:
        yield
    except Waiting as error:
        if not as_json:
            raise
        print(json.dumps({"ticket": error.ticket, "situation": error.situation}, indent=2))
        raise typer.Exit(error.exit_code) from None


def queue(status: QueueStatus, *, as_json: bool) -> None:
    """Whose turn it is, the own tickets, and how many others wait."""
    if as_json:
        print(json.dumps(asdict(status), indent=2))
        return
    if status.scheduler == "none":
        print("nobody waits in turn here: questions are answered as they come")
        return
    whose = (
        "yours" if status.yours else "another analyst's, who has not asked" if status.stalled else "another analyst's"
    )
    idle = (
        "turns wait for their owners"
        if status.idle is None
        else f"passed over after {status.idle:g} s without a question"
    )
    print(f"turn    {whose}")
    print(f"had     {status.had} of {status.given} turns ({status.scheduler}; {idle})")
    for own in status.own:
        at = datetime.fromtimestamp(own.at, UTC).strftime("%Y-%m-%d %H:%M:%S")
        print(f"ticket  {own.number}, {own.state.value}, drawn {at} UTC")
    print(f"others  {status.others} ticket{'s' if status.others != 1 else ''}")
    if status.away:
        print("away    your turns are let go until you ask again")

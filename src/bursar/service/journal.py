"""What a server tells whoever runs it: a line of JSON for each request, and counts and latencies for Prometheus.

Only public facts: who asked (a name and the public id of a token), by which route, how it ended, how long it took. No
address that was typed, no question, no answer, no text of an error, no token.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from typing import TextIO

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper ends of the classes that latencies are counted in; above them there is one more."""

Fact = str | int | float | None


class Journal:
    """Where lines go; nobody else writes there."""

    def __init__(self, to: TextIO | None = None) -> None:
        self._to = to if to is not None else sys.stderr

    def write(self, what: str, **facts: Fact) -> None:
        """One line."""
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        print(json.dumps({"at": at, "what": what, **facts}), file=self._to, flush=True)

    def fault(self, error: BaseException, request: str | None = None) -> None:
        """An error that nobody has thought of: its kind and its place, not its text, which may hold anything."""
        places = traceback.extract_tb(error.__traceback__)
        where = " < ".join(f"{Path(place.filename).name}:{place.lineno}" for place in reversed(places[-6:]))
        self.write("fault", request=request, kind=type(error).__name__, where=where)


@dataclass
class _Seen:
    """What there was at one route."""

    outcomes: Counter[str] = field(default_factory=Counter)
    classes: list[int] = field(default_factory=lambda: [0] * (len(SECONDS) + 1))  # of latencies
    seconds: float = 0.0

    def add(self, outcomes: Mapping[str, int], classes: Sequence[int], seconds: float) -> None:
        self.outcomes.update(outcomes)
        self.classes = [a + b for a, b in zip(self.classes, classes, strict=True)]
        self.seconds += seconds


class Metrics:
    """Requests and their latencies by door, route and outcome.

    Where a server has several processes, each writes its counts into a folder they share, so that any can tell all.
    """

    def __init__(self, shared: Path | None = None) -> None:
        self._seen: defaultdict[tuple[str, str], _Seen] = defaultdict(_Seen)
        self._own = None if shared is None else shared / f"{os.getpid()}.json"

    def saw(self, door: str, route: str, outcome: str, seconds: float) -> None:
        """A request has ended."""
        seen = self._seen[door, route]
        seen.outcomes[outcome] += 1
        seen.classes[bisect_left(SECONDS, seconds)] += 1
        seen.seconds += seconds

    def share(self) -> None:
        """Let the other processes know."""
        if self._own is not None:
            draft = self._own.with_suffix(".new")
            draft.write_text(json.dumps([[*at, s.outcomes, s.classes, s.seconds] for at, s in self._seen.items()]))
            draft.replace(self._own)

    def text(self) -> str:
        """All of it as Prometheus reads it."""
        every: defaultdict[tuple[str, str], _Seen] = defaultdict(_Seen)
        for at, seen in self._seen.items():
            every[at].add(seen.outcomes, seen.classes, seen.seconds)
        for other in () if self._own is None else self._own.parent.glob("*.json"):
            if other != self._own:
                for door, route, outcomes, classes, seconds in json.loads(other.read_text()):
                    every[door, route].add(outcomes, classes, seconds)
        counts = ["# TYPE bursar_requests_total counter"]
        latencies = ["# TYPE bursar_request_seconds histogram"]
        for (door, route), seen in sorted(every.items()):
            place = f'door="{door}",route="{route}"'
            counts += [
                f'bursar_requests_total{{{place},outcome="{outcome}"}} {number}'
                for outcome, number in sorted(seen.outcomes.items())
            ]
            latencies += [
                f'bursar_request_seconds_bucket{{{place},le="{end}"}} {number}'
                for end, number in zip([*SECONDS, "+Inf"], accumulate(seen.classes), strict=True)
            ]
            latencies.append(f"bursar_request_seconds_sum{{{place}}} {seen.seconds:.6f}")
            latencies.append(f"bursar_request_seconds_count{{{place}}} {sum(seen.classes)}")
        return "\n".join([*counts, *latencies, ""])

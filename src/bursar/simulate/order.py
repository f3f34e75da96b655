"""In which order questions are answered, and how many steps that takes (Multi-Analyst DP, Algorithm 2)."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence

from bursar.analysts.scheduler import Randomized, Scheduler, Turns
from bursar.simulate.mix import Asked


def served(arrivals: Sequence[Asked], scheduler: Scheduler | None) -> tuple[list[Asked], int]:
    """The order of answers and the time to completion.

    In each step one question arrives, as long as there are more, and one can be answered. Without a scheduler that is
    the one that has arrived. In turn, everybody waits until whoever is next has asked; by lot, a step whose lot falls
    on somebody who has not asked is lost. Analysts who will ask nothing more let their turns go.
    """
    if scheduler is None:
        return list(arrivals), len(arrivals)
    left = Counter(asked.analyst for asked in arrivals)
    line: dict[str, deque[Asked]] = {who: deque() for who in left}
    turns: Turns = {}
    turn: str | None = None
    done: list[Asked] = []
    steps = 0
    while len(done) < len(arrivals):
        if steps < len(arrivals):
            line[arrivals[steps].analyst].append(arrivals[steps])
        steps += 1
        if turn is None or isinstance(scheduler, Randomized):
            turn, turns = scheduler.next(turns, [who for who, number in left.items() if number])
        if line[turn]:
            done.append(line[turn].popleft())
            left[turn] -= 1
            turn = None
    return done, steps

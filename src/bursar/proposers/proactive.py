"""Nodes that nobody asked for, bought where the loss of their cells has room below the largest: they cost nothing.

CacheDP's proactive querying (section 5.3) goes by the number of rows on a path; here it is each cell's own loss that
counts, and noise is as fine as the room allows. The levels are those that the question's own nodes come from, finest
first: what answers a fine question answers a coarse one too.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bursar.estimation.least_squares import Reconstruction
from bursar.core.accounting import Mode
from bursar.planner.offer import Views
from bursar.proposers.buying.purchase import Bought, Purchase, Wish, finer
from bursar.core.queries import Mask, Product, Steps
from bursar.strategies.levels import is_node, levels

Reals = NDArray[np.float64]

LONGEST = 2048
"""Longest column whose levels are bought where that costs nothing."""

WORTH = 0.3
"""Nodes are bought if there is room for at least this share of the loss that the question's own nodes need."""

STEPS_PER_OCTAVE = 4
"""Losses come in steps, so that few purchases are needed."""

ROUNDING = 1e-9
"""Room that is left unused, since prices are rounded up."""


def proactive(purchase: Purchase, columns: tuple[str, ...], views: Views) -> tuple[Bought, ...]:
    """What fits below the largest loss on one column after the purchase.

    Edge cases: nothing for joint or very long columns; nor with Gaussian noise, where `incremental` fills the room.
    """
    if views.mode is not Mode.PURE or len(columns) != 1 or views.domain[columns[0]].size > LONGEST:
        return ()
    name, size = columns[0], views.domain[columns[0]].size
    loss = _losses(purchase.after)[purchase.after.classes[name]]
    cap = float(loss.max(initial=0.0)) * (1 - ROUNDING)
    known, taken = views.nodes.over(columns), set(purchase.wish.boxes)
    events: list[Bought] = []
    used = [cuts for cuts in levels(size) if any(is_node(low, high, (cuts,)) for ((low, high),) in taken)]
    for cuts in reversed(used):
        boxes = [box for box in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True) if (box,) not in taken]
        if not boxes:
            continue
        lows, highs = np.array(boxes).T
        mask = Mask(columns, (size,), Steps.ranges(lows, highs, size))
        wish = Wish(rows=Product((mask,)), nodes=[known.get((box,)) for box in boxes])
        present = wish.losses(views.mode)
        room = cap - np.array([loss[low:high].max() for low, high in boxes])
        after = _in_steps(np.minimum(present + np.maximum(room, 0.0), purchase.level), purchase.level)
        after = np.where((after >= WORTH * purchase.level) & (after > present), after, 0.0)
        events += finer(wish, after, views)
        for (low, high), more in zip(boxes, np.where(after > 0, after - present, 0.0), strict=True):
            loss[low:high] += more
    return tuple(events)


def _in_steps(losses: Reals, level: float) -> Reals:
    """Rounded down to the level over a power of 2^(1/4)."""
    steps = np.ceil(STEPS_PER_OCTAVE * np.log2(level / np.maximum(losses, level * 2.0**-10)) - 1e-6)
    return np.asarray(level * 2.0 ** (-steps / STEPS_PER_OCTAVE))


def _losses(after: Reconstruction) -> Reals:
    """The loss of each merged cell, from everything known on its columns."""
    each = np.array([1 / noise.scale for noise in after.noises])
    return np.asarray(each @ np.abs(after.rows / np.sqrt(after.state.cells)))

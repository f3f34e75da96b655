"""Presets: which ways of answering take part."""

from __future__ import annotations

from bursar.kernel.accounting import Mode
from bursar.planner.choose import Preset
from bursar.proposers.direct import Direct
from bursar.proposers.exact import Exact
from bursar.proposers.invest import Invest
from bursar.proposers.reconstruct import Reconstruct
from bursar.proposers.strategy import Strategy

THETA = {Mode.PURE: 1.0, Mode.CONCENTRATED: 0.4}
"""From which share of its price on rent justifies a strategy for all questions; sooner where each one is cheap."""

default = Preset("default", (Exact(), Reconstruct(), Strategy(), Invest(theta=THETA), Direct()))

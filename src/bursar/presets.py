"""Presets: which ways of answering take part."""

from __future__ import annotations

from bursar.planner.choose import Preset
from bursar.proposers.direct import Direct
from bursar.proposers.exact import Exact
from bursar.proposers.reconstruct import Reconstruct
from bursar.proposers.strategy import Strategy

default = Preset("default", (Exact(), Reconstruct(), Strategy(), Direct()))

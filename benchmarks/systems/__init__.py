"""Published systems as presets of the same planner, on the same kernel: what Bursar is compared with.

Each is charged as its paper charges: every measurement costs its largest loss, and costs add up.
"""

from __future__ import annotations

from benchmarks.systems.apex import Apex
from benchmarks.systems.pioneer import Pioneer
from bursar.planner.choose import Preset
from bursar.proposers.direct import Direct

laplace = Preset("laplace", (Direct(),))
apex = Preset("apex", (Apex(),))
apex_cache = Preset("apex-cache", (Apex(cached=True),))
pioneer = Preset("pioneer", (Pioneer(),))

__all__ = ["apex", "apex_cache", "laplace", "pioneer"]

"""Multi-Analyst (Pujol et al.) as published: what Seeded Cache and Reconstruct answers with.

The phases are in `papers/multi_analyst/seeded_cache.py`; a config with `policy = "seeded-cache"` has them. With the
engine's default preset a question is bought by its best strategy; here it is bought as it is asked.
"""

from __future__ import annotations

from bursar.planner.choose import Preset
from bursar.proposers.direct import Direct
from bursar.proposers.reuse import Exact, Reconstruct

preset = Preset("multi-analyst", (Exact(), Reconstruct(), Direct()), sequential=True)
"""Algorithm 1, charged as in its paper: the cache, reconstruction, and fresh noise on the question itself."""

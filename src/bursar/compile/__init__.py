"""Stage 2 of 5: Query -> Workload.

`resolve.py` (which columns, groups of values and partitions are meant) -> `conditions.py` (where a condition holds, as
sets of cells of few columns) -> `groups.py` and `masks.py` (rows, one per group) -> `operands.py`, `outputs.py` (what
each aggregate is of, and made of) -> `compiler.py` (labelled lines, as `workload.py` has them; `compile_cache.py`
keeps them).

A question means what DuckDB would answer over the public view: the columns after clipping and binning, NULL as three-
valued logic has it. Where the cells cannot tell, the question is refused; `conditions.py` states the rule.
"""

from bursar.compile.compiler import MOST_ANSWERS, compile
from bursar.compile.resolve import Level
from bursar.compile.workload import Workload

__all__ = ["MOST_ANSWERS", "Level", "Workload", "compile"]

"""Stage 2 of 5: Query -> Workload.

`resolve_names.py` (which column is meant) -> `levels.py` (groups of values as the values in them) ->
`partition_window.py` (which partitions are meant) -> `three_valued.py` (where a condition holds, cell by cell) ->
`regions.py` (a WHERE as sets of cells of few columns) -> `masks.py` (rows, one per group) -> `compile.py` (labelled
lines). A refusal goes through the room `rewrite` to a question that works.

A question means what DuckDB would answer over the public view: the columns after clipping and binning, NULL as three-
valued logic has it. Where the cells cannot tell, the question is refused; `three_valued.py` states the rule.
"""

from bursar.compile.compile import MOST_ANSWERS, compile
from bursar.compile.levels import Level
from bursar.compile.workload import Workload

__all__ = ["MOST_ANSWERS", "Level", "Workload", "compile"]

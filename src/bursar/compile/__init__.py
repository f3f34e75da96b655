"""Stage 2 of 5: Query -> Workload.

names (which column is meant) -> levels (groups of values as the values in them) -> sealed (which partitions are meant)
-> truth (where a condition holds, cell by cell) -> regions (a WHERE as sets of cells of few columns) -> masks (rows,
one per group) -> compile (labelled lines). A refusal goes through repair to a question that works.

A question means what DuckDB would answer over the public view: the columns after clipping and binning, NULL as three-
valued logic has it. Where the cells cannot tell, the question is refused; `truth` states the rule.
"""

from bursar.compile.compile import MOST_ANSWERS, compile
from bursar.compile.levels import Level
from bursar.compile.workload import Workload

__all__ = ["MOST_ANSWERS", "Level", "Workload", "compile"]

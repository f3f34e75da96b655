"""Stage 1 of 5: text -> Query.

`tokens.py` (limits, one statement; the accuracy clause is cut off) -> sqlglot -> `syntax.py` (nothing unknown passes)
-> `parse.py`, `groups.py`, `conditions.py`, `aggregates.py`, `literals.py` (plain data, defined in `query.py`); SELECTs
over SELECTs are read by `layers.py` and `read_stage.py`. `render.py` writes a Query out again.

Nothing an analyst typed leaves this room but names and literals inside a `Query`; no SQL is ever handed on.
"""

from bursar.sql.names import Literal, Name
from bursar.sql.parse import parse
from bursar.sql.query import (
    FALSE,
    TRUE,
    Aggregate,
    And,
    AtLeast,
    Between,
    Branch,
    Case,
    CaseBranch,
    CaseGroups,
    Compare,
    Condition,
    Constant,
    Flag,
    Formula,
    Function,
    In,
    IsNull,
    IsTrue,
    Item,
    Key,
    Like,
    Linear,
    Not,
    Op,
    Or,
    Query,
    Sort,
    Stepped,
    Trimmed,
)
from bursar.sql.render import render

__all__ = [
    "FALSE",
    "TRUE",
    "Aggregate",
    "And",
    "AtLeast",
    "Between",
    "Branch",
    "Case",
    "CaseBranch",
    "CaseGroups",
    "Compare",
    "Condition",
    "Constant",
    "Flag",
    "Formula",
    "Function",
    "In",
    "IsNull",
    "IsTrue",
    "Item",
    "Key",
    "Like",
    "Linear",
    "Literal",
    "Name",
    "Not",
    "Op",
    "Or",
    "Query",
    "Sort",
    "Stepped",
    "Trimmed",
    "parse",
    "render",
]

"""Stage 1 of 5: text -> Query.

`tokens.py` (limits, one statement) -> `accuracy.py` (the clause is cut off) -> sqlglot -> `allowed.py` (nothing unknown
passes) -> `statement.py`, `groups.py`, `aggregates.py`, `conditions.py` and `result_clauses.py` (plain data, defined in
`query.py`). A refusal goes through the room `rewrite` and `render.py` to a question that works.

Nothing an analyst typed leaves this room but names and literals inside a `Query`; no SQL is ever handed on.
"""

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
    Literal,
    Name,
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

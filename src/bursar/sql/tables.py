"""Which tables a text names, before it is known what it asks: with several private tables, one of them is asked."""

from __future__ import annotations

from functools import lru_cache

from sqlglot import exp

from bursar.errors import QueryError
from bursar.sql.parse import read_syntax
from bursar.sql.pivots import as_select
from bursar.sql.query import Described
from bursar.sql.tokens import described


@lru_cache(maxsize=1024)
def tables_named(text: str) -> tuple[frozenset[str], ...]:
    """The tables behind FROM and JOIN of each SELECT that has any, in lower case; none where a text cannot be read.

    Of DESCRIBE, the table that is described.
    """
    told = described(text)
    if told is not None:
        return (frozenset([told[1].text.casefold()]),) if told[0] is Described.COLUMNS else ()
    try:
        tree = read_syntax(text).tree
    except QueryError:
        return ()
    if isinstance(tree, exp.Pivot):
        tree = as_select(tree)
    ctes = {cte.alias_or_name.casefold() for cte in tree.find_all(exp.CTE)}
    named: dict[int, set[str]] = {}
    for table in tree.find_all(exp.Table):
        select, name = table.find_ancestor(exp.Select), table.name.casefold()
        if select is not None and name and name not in ctes:
            named.setdefault(id(select), set()).add(name)
    return tuple(frozenset(names) for names in named.values())

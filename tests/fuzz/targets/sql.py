"""Any text as a question: a Query and its workload, or a QueryError that our own code did not stumble into."""

from __future__ import annotations

import atheris
from target import fuzz, text_of

with atheris.instrument_imports(include=["bursar.sql", "bursar.workload"]):
    from bursar.errors import QueryError
    from bursar.sql import parse
    from bursar.workload import compile

from fuzz.seeds import SQL
from property.test_sql_junk import DOMAIN, stumbled


def read(data: bytes) -> None:
    text = text_of(data)
    try:
        compile(parse(text), DOMAIN, "people")
    except QueryError as refusal:
        if not str(refusal) or not -1 <= refusal.position <= len(text) or stumbled(refusal.__cause__):
            raise AssertionError("a refusal that helps nobody") from refusal


if __name__ == "__main__":
    fuzz(read, seeds=SQL.values())

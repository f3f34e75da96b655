"""Door 2: PostgreSQL's wire, for psql, drivers and BI tools.

protocol.py     bytes to messages and back
types.py        PostgreSQL's types: OIDs, values as text and as bytes
scram.py        tokens as passwords
connection.py   one socket, within limits
login.py        from a socket to somebody who may ask
statements.py   statements taken apart; those that are no questions
settings.py     SET and SHOW
router.py       the data, or the catalog
trees.py        statements as sqlglot's trees
questions.py    a statement about the data: which question it is, or which public fact
spelling.py     PostgreSQL's spelling of a question to Bursar's
asked.py        what the engine is asked, and its answers as rows
public.py       what is told for nothing
catalog.py      looks at pg_catalog and information_schema
catalog_relations.py   what stands in them: public facts
session.py      portals, cursors, transactions
failures.py     SQLSTATEs
server.py       the listener
"""

from bursar.service.wire.server import WireServer, start_wire

__all__ = ["WireServer", "start_wire"]

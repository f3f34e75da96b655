"""The doors that text and bytes come in by, and what each promises of anything that is sent.

python tests/fuzz/doors.py sql        sends the hand-written seeds in, one after another, and says what became of them
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # tests/, where this is run as a program

from bursar.compile import compile
from bursar.config import load
from bursar.core.ledger import keyed_answers
from bursar.core.ledger import record_codec as codec
from bursar.core.queries import decode, encode
from bursar.errors import BudgetError, BursarError, ConfigError, GoalError, LedgerError, QueryError
from bursar.service.wire.failures import WireError
from bursar.service.wire.protocol import (
    Bind,
    Parse,
    Password,
    ProtocolError,
    Simple,
    format_of,
    read_message,
    read_startup,
)
from bursar.service.wire.scram import Exchange
from bursar.service.wire.statements import Select, read, split
from bursar.service.wire.trees import parse_statement
from bursar.service.wire.types import TYPES, BadValue
from bursar.service.wire.types import decode as value_of
from bursar.session import Bursar
from bursar.sql import parse
from fuzz import seeds
from harness.small import engine
from property.test_sql_junk import DOMAIN, stumbled


@dataclass(frozen=True, kw_only=True)
class Door:
    """`send` returns whether the bytes were accepted; anything but the one kind of refusal is raised."""

    send: Callable[[bytes], bool]
    seeds: Mapping[str, bytes]


def ask(data: bytes) -> bool:
    """A question: a workload, or a QueryError with its place that our own code did not stumble into."""
    text = _text(data)
    try:
        compile(parse(text), DOMAIN, "people")
    except QueryError as refusal:
        return _refused(
            refusal, str(refusal) and -1 <= refusal.position <= len(text) and not stumbled(refusal.__cause__)
        )
    return True


def price(data: bytes) -> bool:
    """What stands behind a good question: an explanation of what it would cost, or a refusal."""
    try:
        assert str(_database().explain(f"{seeds.COUNT} {_text(data)}"))
    except (QueryError, GoalError, BudgetError) as refusal:
        return _refused(refusal, str(refusal))
    return True


def configure(data: bytes) -> bool:
    """A config file: a Config, or a ConfigError that names the file and one of its lines."""
    path = Path(_folder().name) / "people.toml"
    path.write_bytes(data)
    try:
        load(path)
    except ConfigError as refusal:
        place = refusal.file == str(path) and 0 <= refusal.line <= data.count(b"\n") + 1
        return _refused(refusal, place and refusal.reason)
    return True


class Codec(NamedTuple):
    """A way to read a row of a ledger, and the way to write what was read."""

    read: Callable[[bytes], Any]
    write: Callable[[Any], bytes]
    one_form: bool  # one byte string for each value, so what was read is written as it was


CODECS = {
    "strategy": Codec(decode, encode, one_form=True),
    "record": Codec(
        lambda body: codec.decode_record(1, body, seeds.BY_DIGEST.__getitem__), codec.encode_record, one_form=False
    ),
    "hold": Codec(lambda body: codec.decode_hold(body, seeds.BY_DIGEST.__getitem__), codec.encode_hold, one_form=False),
    "claim": Codec(keyed_answers.decode_claim, keyed_answers.encode_claim, one_form=False),
    "strategy by digest": Codec(
        lambda body: codec.decode_strategy(hashlib.blake2b(body, digest_size=16).hexdigest(), body),
        codec.encode_strategy,
        one_form=True,
    ),
}


def recall(data: bytes) -> bool:
    """A row of a ledger, behind a byte that says of which kind: what was stored, or a LedgerError."""
    kinds = list(CODECS.values())
    return reread(kinds[data[0] % len(kinds)], data[1:]) if data else False


def reread(kind: Codec, body: bytes) -> bool:
    """Whether bytes are accepted; what is accepted can be written, and read again."""
    try:
        again = kind.write(kind.read(body))
    except LedgerError:
        return False
    assert kind.write(kind.read(again)) == again
    assert again == body or not kind.one_form
    return True


def speak(data: bytes) -> bool:
    """A message of PostgreSQL's wire, its kind first (0: the first of a connection); what it asks is read, not run."""
    try:
        message = read_startup(data[1:]) if data[:1] == b"\0" else read_message(data[:1], data[1:])
        if isinstance(message, Simple | Parse):
            for piece in split(message.sql):
                statement = read(piece)
                if isinstance(statement, Select):
                    parse_statement(statement.text)
        if isinstance(message, Bind):
            for place, value in enumerate(message.values):
                kind = TYPES[place % len(TYPES)]
                value_of(value, kind.oid, format_of(message.formats, place))
        if isinstance(message, Password):
            Exchange(b"salt", []).first(message.body)
    except (ProtocolError, WireError, BadValue) as refusal:
        if not str(refusal):
            raise AssertionError("a refusal that helps nobody") from refusal
        return False
    return True


def _refused(refusal: BursarError, helps: object) -> bool:
    if not helps:
        raise AssertionError("a refusal that helps nobody") from refusal
    return False


def _text(data: bytes) -> str:
    """Any bytes as text, with lone surrogates where they are not UTF-8, as a command line has them."""
    return data.decode("utf-8", "surrogateescape")


def _bytes(found: Mapping[str, str | bytes]) -> dict[str, bytes]:
    return {name: s.encode("utf-8", "surrogatepass") if isinstance(s, str) else s for name, s in found.items()}


@cache
def _database() -> Bursar:
    return engine()


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


_ROWS = (seeds.DECODED, seeds.RECORDS, seeds.HOLDS, seeds.CLAIMS)
DOORS = {
    "sql": Door(send=ask, seeds=_bytes(seeds.SQL)),
    "clause": Door(send=price, seeds=_bytes(seeds.CLAUSES)),
    "config": Door(send=configure, seeds=_bytes(seeds.TOML)),
    "wire": Door(send=speak, seeds=seeds.WIRE),
    "ledger": Door(
        send=recall,
        seeds={
            f"{kind}: {name}": bytes([number]) + body
            for number, (kind, rows) in enumerate(zip(CODECS, _ROWS, strict=False))
            for name, body in rows.items()
        },
    ),
}

if __name__ == "__main__":
    door = DOORS[sys.argv[1]]
    for name, body in door.seeds.items():
        print(f"{name}: ", end="", flush=True)
        print("accepted" if door.send(body) else "refused", flush=True)

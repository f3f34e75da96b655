"""PostgreSQL's frontend/backend protocol, version 3: bytes to messages and back. Pure functions, nothing is read here.

A message that cannot be understood raises ProtocolError, whatever the bytes are; sizes are checked before anything is
kept. Bytes that come after a message has said all it has to say make it a wrong one.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

LARGEST_STARTUP = 10_000
"""Most bytes of what comes first, as in PostgreSQL: nobody has logged in yet."""

LARGEST_MESSAGE = 2**20
MOST_PARAMETERS = 1_000

CANCEL, TLS, GSSAPI = 80877102, 80877103, 80877104

TEXT, BINARY = 0, 1


class ProtocolError(Exception):
    """Bytes that are not a message of the protocol. The text says nothing about what they hold."""


# -- what clients send ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Startup:
    """The first message: who wants in where, and settings."""

    parameters: Mapping[str, str]
    minor: int = 0
    unknown: tuple[str, ...] = ()  # options of the protocol itself, of which there are none


@dataclass(frozen=True)
class CancelRequest:
    """Sent on a connection of its own, to stop what another one asks."""

    process: int
    secret: int


@dataclass(frozen=True)
class EncryptionRequest:
    """Whether the rest may be encrypted: answered with one letter."""

    tls: bool  # else by GSSAPI


@dataclass(frozen=True)
class Simple:
    """Statements to run, as text."""

    sql: str


@dataclass(frozen=True)
class Parse:
    """Prepare a statement; nothing is run."""

    name: str
    sql: str
    types: tuple[int, ...]  # of parameters; 0: to be inferred


@dataclass(frozen=True)
class Bind:
    """Make a portal: a prepared statement with values."""

    portal: str
    statement: str
    formats: tuple[int, ...]
    values: tuple[bytes | None, ...] = field(repr=False)
    results: tuple[int, ...] = ()


@dataclass(frozen=True)
class Describe:
    """What columns a statement (or a portal) gives."""

    portal: bool
    name: str


@dataclass(frozen=True)
class Execute:
    """Fetch rows of a portal; all of them where `most` is 0."""

    portal: str
    most: int


@dataclass(frozen=True)
class CloseMessage:
    """Forget a statement or a portal."""

    portal: bool
    name: str


@dataclass(frozen=True)
class Password:
    """A step of logging in; what it holds depends on the step."""

    body: bytes = field(repr=False)


@dataclass(frozen=True)
class Sync:
    """The end of a series of messages of the extended protocol."""


@dataclass(frozen=True)
class Flush:
    """Send what is ready."""


@dataclass(frozen=True)
class Terminate:
    """Good-bye."""


@dataclass(frozen=True)
class CopyMessage:
    """Data that nobody has asked for; they are dropped, as PostgreSQL does."""


Message = Simple | Parse | Bind | Describe | Execute | CloseMessage | Password | Sync | Flush | Terminate | CopyMessage


class _Fields:
    """Reads the fields of one message, from its first byte to its last."""

    def __init__(self, body: bytes) -> None:
        self._body, self._at = body, 0

    def take(self, length: int) -> bytes:
        end = self._at + length
        if length < 0 or end > len(self._body):
            raise ProtocolError("a message ends too early")
        taken, self._at = self._body[self._at : end], end
        return taken

    def text(self) -> str:
        end = self._body.find(b"\0", self._at)
        if end < 0:
            raise ProtocolError("a text has no end")
        taken, self._at = self._body[self._at : end], end + 1
        try:
            return taken.decode()
        except UnicodeDecodeError:
            raise ProtocolError("a text is not UTF-8") from None

    def byte(self) -> bytes:
        return self.take(1)

    def short(self) -> int:
        number: int = struct.unpack("!h", self.take(2))[0]
        return number

    def integer(self) -> int:
        number: int = struct.unpack("!i", self.take(4))[0]
        return number

    def count(self) -> int:
        number = self.short()
        if not 0 <= number <= MOST_PARAMETERS:
            raise ProtocolError(f"a message has at most {MOST_PARAMETERS} parameters")
        return number

    def value(self) -> bytes | None:
        length = self.integer()
        return None if length == -1 else self.take(length)

    @property
    def left(self) -> int:
        return len(self._body) - self._at

    def end(self) -> None:
        if self.left:
            raise ProtocolError("a message does not end where it should")


def read_startup(body: bytes) -> Startup | CancelRequest | EncryptionRequest:
    """What stands in the first message of a connection, behind its length."""
    fields = _Fields(body)
    code = fields.integer()
    if code in (TLS, GSSAPI):
        fields.end()
        return EncryptionRequest(tls=code == TLS)
    if code == CANCEL:
        request = CancelRequest(fields.integer(), fields.integer())
        fields.end()
        return request
    if code >> 16 != 3:
        raise ProtocolError("only version 3 of the protocol is spoken here")
    parameters: dict[str, str] = {}
    while fields.left > 1:
        name = fields.text()
        parameters[name] = fields.text()
    if fields.byte() != b"\0":
        raise ProtocolError("the parameters have no end")
    unknown = tuple(name for name in parameters if name.startswith("_pq_."))
    return Startup(parameters, code & 0xFFFF, unknown)


def read_message(kind: bytes, body: bytes) -> Message:
    """What a message says: one byte for its kind, and what stands behind its length."""
    fields = _Fields(body)
    message = _read(kind, fields)
    fields.end()
    return message


def _read(kind: bytes, fields: _Fields) -> Message:
    match kind:
        case b"Q":
            return Simple(fields.text())
        case b"P":
            name, sql = fields.text(), fields.text()
            return Parse(name, sql, tuple(fields.integer() for _ in range(fields.count())))
        case b"B":
            portal, statement = fields.text(), fields.text()
            formats = _formats(fields)
            values = tuple(fields.value() for _ in range(fields.count()))
            return Bind(portal, statement, formats, values, _formats(fields))
        case b"D" | b"C":
            what = fields.byte()
            if what not in (b"S", b"P"):
                raise ProtocolError("a statement or a portal is expected")
            message = Describe if kind == b"D" else CloseMessage
            return message(what == b"P", fields.text())
        case b"E":
            return Execute(fields.text(), fields.integer())
        case b"p":
            return Password(fields.take(fields.left))
        case b"S":
            return Sync()
        case b"H":
            return Flush()
        case b"X":
            return Terminate()
        case b"d" | b"c" | b"f":
            fields.take(fields.left)
            return CopyMessage()
    raise ProtocolError("a message of an unknown kind")


def _formats(fields: _Fields) -> tuple[int, ...]:
    formats = tuple(fields.short() for _ in range(fields.count()))
    if any(code not in (TEXT, BINARY) for code in formats):
        raise ProtocolError("a format is text or binary")
    return formats


def format_of(formats: Sequence[int], place: int) -> int:
    """The format of one value: each has its own, or all have one, or all are text."""
    if not formats:
        return TEXT
    return formats[0] if len(formats) == 1 else formats[place] if place < len(formats) else TEXT


# -- what the server sends -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Field:
    """A column of a result, as it is described."""

    name: str
    type: int  # OID
    size: int  # in bytes, -1 where it varies


def frame(kind: bytes, body: bytes = b"") -> bytes:
    """A message with its kind and length."""
    return kind + struct.pack("!i", len(body) + 4) + body


def _text(text: str) -> bytes:
    return text.encode("utf-8", "replace").replace(b"\0", b"?") + b"\0"


def authentication(code: int, body: bytes = b"") -> bytes:
    """A step of logging in; 0 is the last one."""
    return frame(b"R", struct.pack("!i", code) + body)


def parameter_status(name: str, value: str) -> bytes:
    """A setting that clients follow."""
    return frame(b"S", _text(name) + _text(value))


def backend_key(process: int, secret: int) -> bytes:
    """What a client needs to cancel."""
    return frame(b"K", struct.pack("!ii", process, secret))


def ready(status: str) -> bytes:
    """Ready for the next: I outside of a transaction, T inside of one, E in one that has failed."""
    return frame(b"Z", status.encode())


def negotiate(unknown: Sequence[str]) -> bytes:
    """The newest minor version is 0, and these options are not known."""
    return frame(b"v", struct.pack("!ii", 0, len(unknown)) + b"".join(map(_text, unknown)))


def row_description(fields: Sequence[Field], formats: Sequence[int] = ()) -> bytes:
    """The columns of a result. They belong to no table: with one, clients would ask for more about it."""
    parts = [
        _text(field.name) + struct.pack("!ihihih", 0, 0, field.type, field.size, -1, format_of(formats, place))
        for place, field in enumerate(fields)
    ]
    return frame(b"T", struct.pack("!h", len(fields)) + b"".join(parts))


def data_row(values: Sequence[bytes | None]) -> bytes:
    """One row."""
    parts = [struct.pack("!i", -1) if v is None else struct.pack("!i", len(v)) + v for v in values]
    return frame(b"D", struct.pack("!h", len(values)) + b"".join(parts))


def parameter_description(types: Sequence[int]) -> bytes:
    """The types of the parameters of a statement."""
    return frame(b"t", struct.pack(f"!h{len(types)}i", len(types), *types))


def copy_out(columns: int, format: int) -> bytes:
    """The start of a COPY to the client."""
    return frame(b"H", struct.pack(f"!bh{columns}h", format, columns, *[format] * columns))


def command_complete(tag: str) -> bytes:
    """The end of a statement."""
    return frame(b"C", _text(tag))


def report(kind: bytes, fields: Mapping[str, str]) -> bytes:
    """An error (E) or a notice (N), by the letters of its fields."""
    return frame(kind, b"".join(key.encode() + _text(value) for key, value in fields.items() if value) + b"\0")


PARSE_COMPLETE, BIND_COMPLETE, CLOSE_COMPLETE = frame(b"1"), frame(b"2"), frame(b"3")
NO_DATA, EMPTY_QUERY, PORTAL_SUSPENDED, COPY_DONE = frame(b"n"), frame(b"I"), frame(b"s"), frame(b"c")

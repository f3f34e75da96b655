"""Bytes to messages: what is no message is refused, whatever it is."""

from __future__ import annotations

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bursar.service.wire.protocol import (
    Bind,
    CancelRequest,
    Describe,
    EncryptionRequest,
    Execute,
    Field,
    Parse,
    ProtocolError,
    Simple,
    Startup,
    data_row,
    format_of,
    parameter_description,
    read_message,
    read_startup,
    row_description,
)


def test_messages_are_read_whole() -> None:
    assert read_message(b"Q", b"SELECT 1\0") == Simple("SELECT 1")
    types = struct.pack("!hii", 2, 23, 0)
    assert read_message(b"P", b"s\0SELECT $1\0" + types) == Parse("s", "SELECT $1", (23, 0))
    body = b"p\0s\0" + struct.pack("!hh", 1, 1) + struct.pack("!hi", 2, 2) + b"ab" + struct.pack("!ihh", -1, 1, 0)
    assert read_message(b"B", body) == Bind("p", "s", (1,), (b"ab", None), (0,))
    assert read_message(b"D", b"Pname\0") == Describe(True, "name")
    assert read_message(b"E", b"p\0" + struct.pack("!i", 5)) == Execute("p", 5)
    assert read_startup(struct.pack("!i", 3 << 16) + b"user\0ana\0\0") == Startup({"user": "ana"})
    assert read_startup(struct.pack("!i", 80877103)) == EncryptionRequest(tls=True)
    assert read_startup(struct.pack("!iii", 80877102, 7, 9)) == CancelRequest(7, 9)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (b"Q", b"SELECT 1"),
        (b"Q", b"SELECT 1\0more"),
        (b"Q", b"\xff\0"),
        (b"P", b"s\0SELECT\0" + struct.pack("!h", 30_000)),
        (b"B", b"\0\0" + struct.pack("!hh", 1, 7) + struct.pack("!hh", 0, 0)),
        (b"B", b"\0\0" + struct.pack("!hhi", 0, 1, 2**31 - 1)),
        (b"B", b"\0\0" + struct.pack("!hhi", 0, 1, -2)),
        (b"D", b"Xname\0"),
        (b"?", b""),
    ],
)
def test_what_is_no_message_is_refused(kind: bytes, body: bytes) -> None:
    with pytest.raises(ProtocolError):
        read_message(kind, body)


@given(kind=st.sampled_from([b"Q", b"P", b"B", b"D", b"E", b"C", b"p", b"S", b"H", b"X", b"d", b"z"]), body=st.binary())
def test_any_bytes_are_read_or_refused(kind: bytes, body: bytes) -> None:
    for read in (lambda: read_message(kind, body), lambda: read_startup(body)):
        with suppress(ProtocolError):
            read()


def test_formats_are_one_for_all_or_one_each() -> None:
    assert [format_of(formats, 1) for formats in ((), (1,), (0, 1))] == [0, 1, 1]


def test_columns_belong_to_no_table() -> None:
    told = row_description([Field("n", 20, 8)])
    assert told[:1] == b"T"
    assert struct.unpack("!i", told[1:5])[0] == len(told) - 1
    assert b"n\0" + struct.pack("!ihihih", 0, 0, 20, 8, -1, 0) in told
    assert data_row([b"7", None])[5:] == struct.pack("!hi", 2, 1) + b"7" + struct.pack("!i", -1)
    assert parameter_description([23, 25])[5:] == struct.pack("!hii", 2, 23, 25)

"""The decoders of a ledger's rows, and what each promises of any bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

from bursar.errors import LedgerError
from bursar.kernel.ledger import codec
from bursar.queries import decode, encode
from fuzz.seeds import BY_DIGEST


class Decoder(NamedTuple):
    """A way to read bytes, and the way to write what was read."""

    read: Callable[[bytes], Any]
    write: Callable[[Any], bytes]
    one_form: bool  # there is one byte string for each value, so what was read is written as it was


DECODERS = (
    Decoder(decode, encode, one_form=True),
    Decoder(lambda body: codec.decode_record(1, body, BY_DIGEST.__getitem__), codec.encode_record, one_form=False),
    Decoder(lambda body: codec.decode_hold(body, BY_DIGEST.__getitem__), codec.encode_hold, one_form=False),
    Decoder(codec.decode_claim, codec.encode_claim, one_form=False),
    Decoder(
        lambda body: codec.decode_strategy(hashlib.blake2b(body, digest_size=16).hexdigest(), body),
        codec.encode_strategy,
        one_form=True,
    ),
)


def read_again(decoder: Decoder, body: bytes) -> bool:
    """Whether the bytes were accepted. Refusals are LedgerErrors; what is accepted can be written and read again."""
    try:
        value = decoder.read(body)
        again = decoder.write(value)
    except LedgerError:
        return False
    assert decoder.write(decoder.read(again)) == again
    assert again == body or not decoder.one_form
    return True

"""Any bytes as a row of a ledger: what was stored, which is then written again the same way, or a LedgerError."""

from __future__ import annotations

import atheris
from target import fuzz

with atheris.instrument_imports(include=["bursar.queries", "bursar.kernel.ledger.codec"]):
    from fuzz.decoders import DECODERS, read_again

from fuzz.seeds import CLAIMS, DECODED, HOLDS, RECORDS

SEEDS = [
    bytes([number]) + body for number, rows in enumerate((DECODED, RECORDS, HOLDS, CLAIMS)) for body in rows.values()
]


def read(data: bytes) -> None:
    read_again(DECODERS[data[0] % len(DECODERS)] if data else DECODERS[0], data[1:])


if __name__ == "__main__":
    fuzz(read, seeds=SEEDS)

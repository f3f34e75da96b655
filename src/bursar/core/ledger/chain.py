"""Hashes that bind a ledger together: a chain through the log, and a seal on every other row.

BLAKE2b throughout. They find accidents, torn files and older copies; someone who may write the file can compute
them too, and is found only by a head that the owner wrote down elsewhere (`Health.head`).
"""

from __future__ import annotations

from hashlib import blake2b

CHAIN_BYTES = 32
SEAL_BYTES = 16


def genesis(charter: bytes) -> bytes:
    """chain_0 = H(charter): no record of one ledger fits into the chain of another."""
    return blake2b(charter, digest_size=CHAIN_BYTES, person=b"bursar charter").digest()


def link(previous: bytes, record: bytes) -> bytes:
    """chain_i = H(chain_{i-1}, record_i); the first part has a fixed length, so no two pairs hash the same bytes."""
    return blake2b(previous + record, digest_size=CHAIN_BYTES, person=b"bursar record").digest()


def question(text: str) -> str:
    """H(text) of a question: what the chain has of it, so that the text itself can be erased."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, person=b"bursar question").hexdigest()


def seal(charter_hash: bytes, table: str, name: str, body: bytes) -> bytes:
    """H(charter, table, name, body): a row changed, renamed, or moved to another table or ledger does not fit it."""
    label = f"{len(table)} {len(name)} {table} {name} ".encode()
    return blake2b(label + body, digest_size=SEAL_BYTES, key=charter_hash, person=b"bursar row").digest()

"""What was added up of a log, as a tree of plain values and as bytes: what a checkpoint saves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from bursar.arrays import Integers

if TYPE_CHECKING:
    from bursar.core.accounting.accountant import Book
    from bursar.core.accounting.profile import AddRemove

Tree = Any
"""None, whole numbers, texts, bytes, and lists of these. What is read back has the digest of what was written, so no
reader looks at types again."""

BYTES_AT = "bytes"
"""The one key of what stands for bytes in the text: where they begin, and how many there are."""


def int_bytes(numbers: Integers) -> bytes:
    """Whole numbers in the order of their places, eight bytes each."""
    return np.ascontiguousarray(numbers, "<i8").tobytes()


def ints_of(body: bytes) -> Integers:
    """The numbers of `int_bytes`, in one row; not to be written to."""
    return np.frombuffer(body, "<i8")


def encode_tree(tree: Tree) -> bytes:
    """A line of JSON with places instead of bytes, a line feed, then the bytes one after the other."""
    blobs: list[bytes] = []
    length = 0

    def placed(node: Tree) -> Tree:
        nonlocal length
        if isinstance(node, bytes):
            blobs.append(node)
            length += len(node)
            return {BYTES_AT: [length - len(node), len(node)]}
        return [placed(each) for each in node] if isinstance(node, list) else node

    text = json.dumps(placed(tree), separators=(",", ":"), allow_nan=False)
    return b"".join([text.encode("ascii"), b"\n", *blobs])


def decode_tree(body: bytes) -> Tree:
    """The tree of `encode_tree`; an error of Python where it is none."""
    end = body.index(b"\n") + 1

    def whole(node: Tree) -> Tree:
        if isinstance(node, dict):
            start, length = node[BYTES_AT]
            return body[end + start : end + start + length]
        return [whole(each) for each in node] if isinstance(node, list) else node

    return whole(json.loads(body[: end - 1]))


def losses_state(profile: AddRemove) -> Tree:
    """`Profile.state`."""
    return [[list(columns), int_bytes(loss)] for columns, loss in profile.losses.items()]


def restore_losses(profile: AddRemove, state: Tree) -> None:
    """`Profile.restore`.

    Edge cases: bounds are added up anew when they are needed.
    """
    for columns, loss in state:
        profile.losses[tuple(columns)] = ints_of(loss).reshape(profile._grid(tuple(columns)).shape)
        profile.changed[tuple(columns)] = 0


def book_state(book: Book) -> Tree:
    """All entries of a book, added up, as plain values."""
    profiles = [[generation, profile.state()] for generation, profile in book.profiles.items()]
    generations = [list(pair) for pair in book.generations.items()]
    return [book.entries, generations, book.versions.state(), profiles, book.carried]


def restore_book(book: Book, state: Tree) -> Book:
    """Make an empty book into the one whose state it is."""
    book.entries, generations, versions, profiles, book.carried = state
    book.generations = dict(generations)
    book.versions.restore(versions)
    for generation, losses in profiles:
        book._profile(generation).restore(losses)
    return book

"""Bytes of records, holds and claims: one form, exact, and one kind of error for anything else."""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bursar.core.accounting import Allotted, Closed, Failed, Measured, Opened, Refined, Sealed, Versioned
from bursar.core.ledger import UNKNOWN, Claim, Hold, Purpose, Record, keyed_answers
from bursar.core.ledger import record_codec as codec
from bursar.core.noise.law import Noise, NoiseKind
from bursar.core.queries import LinearMap, Mask, Product, Stack, Steps
from bursar.errors import LedgerError

STRATEGY = Product((Mask(("age",), (4,), Steps.identity(4)),))


SCOPE = Product((Mask(("age",), (4,), Steps.total(4)),))
STACK = Stack((SCOPE,))


def strategies(digest: str) -> LinearMap:
    return {strategy.digest: strategy for strategy in (STRATEGY, SCOPE, STACK)}[digest]


def record(scale: float = 2.5, **changes: Any) -> Record:
    event = Measured(strategy=STRATEGY, noise=Noise(kind=NoiseKind.GAUSSIAN, scale=scale), version=3)
    why = {"analyst": "ann", "question": "abc", "proposer": "tree", "run": 8}
    fields = {"position": 5, "at": 1.7e9, **why, "event": event, "values": np.arange(4)}
    return Record(**{**fields, **changes})


LAWS = {"before": Noise(kind=NoiseKind.LAPLACE, scale=2.5), "after": Noise(kind=NoiseKind.LAPLACE, scale=0.5)}


def refined(rows: list[int], **changes: Any) -> Record:
    event = Refined(block=2, measured=STRATEGY, rows=np.array(rows), version=3, **{**LAWS, **changes})
    return record(event=event, values=np.array(rows) + 7)


def test_the_form_is_fixed() -> None:
    """A change of this text makes every ledger that exists unreadable: raise FORMAT in database.py with it."""
    header = (
        b'{"analyst":"ann","at":1700000000.0,"kind":"measured","noise":"gaussian","proposer":"tree",'
        b'"question":"abc","run":8,"scale":"0x1.4000000000000p+1","strategy":"%b","version":3}\n'
        % STRATEGY.digest.encode()
    )
    assert codec.encode_record(record()) == header + b"".join(n.to_bytes(8, "little") for n in range(4))
    version = record(event=Versioned(version=4, same_rows=True), values=np.zeros(0, np.int64))
    assert codec.encode_record(version) == (
        b'{"analyst":"ann","at":1700000000.0,"kind":"versioned","proposer":"tree","question":"abc","run":8,'
        b'"same_rows":true,"version":4}\n'
    )
    assert codec.encode_record(refined([0, 1, 3])) == (
        b'{"after":"0x1.0000000000000p-1","analyst":"ann","at":1700000000.0,"before":"0x1.4000000000000p+1","block":2,'
        b'"kind":"refined","proposer":"tree","question":"abc","rows":[0,2,3,4],"run":8,"strategy":"%b","version":3}\n'
        % STRATEGY.digest.encode()
    ) + b"".join(n.to_bytes(8, "little") for n in (7, 8, 10))


def sparse(event: Opened | Failed | Closed) -> Record:
    return record(event=event, values=np.arange(2 if isinstance(event, Opened) else 0))


OPENED = Opened(scope=SCOPE, cut=-3, threshold=LAWS["before"], test=LAWS["after"], version=3)
FAILED = Failed(instance=2, query=SCOPE, estimate=-7, version=3)
CLOSED = Closed(instance=2, version=3)


def test_the_form_of_sparse_vectors_is_fixed() -> None:
    digest = SCOPE.digest.encode()
    assert codec.encode_record(sparse(OPENED)) == (
        b'{"analyst":"ann","at":1700000000.0,"cut":-3,"kind":"opened","proposer":"tree","question":"abc","run":8,'
        b'"strategy":"%b",'
        b'"test":"0x1.0000000000000p-1","threshold":"0x1.4000000000000p+1","version":3}\n' % digest
    ) + bytes(8) + b"\1" + bytes(7)
    assert codec.encode_record(sparse(FAILED)) == (
        b'{"analyst":"ann","at":1700000000.0,"estimate":-7,"instance":2,"kind":"failed","proposer":"tree",'
        b'"question":"abc","run":8,"strategy":"%b","version":3}\n' % digest
    )
    assert codec.encode_record(sparse(CLOSED)) == (
        b'{"analyst":"ann","at":1700000000.0,"instance":2,"kind":"closed","proposer":"tree","question":"abc","run":8,'
        b'"version":3}\n'
    )
    for event in (OPENED, FAILED, CLOSED):
        body = codec.encode_record(sparse(event))
        assert codec.encode_record(codec.decode_record(5, body, strategies)) == body


@pytest.mark.parametrize(
    ("event", "fields"),
    [
        (OPENED, {"cut": 1.5}),
        (OPENED, {"cut": True}),
        (OPENED, {"cut": 2**61 + 1}),
        (OPENED, {"cut": ...}),
        (OPENED, {"test": "0x0p+0"}),
        (OPENED, {"threshold": 2.5}),
        (OPENED, {"strategy": STRATEGY.digest}),  # several rows
        (OPENED, {"strategy": STACK.digest}),
        (OPENED, {"strategy": "0" * 32}),
        (OPENED, {"version": ...}),
        (OPENED, {"instance": 2}),
        (FAILED, {"instance": "2"}),
        (FAILED, {"instance": ...}),
        (FAILED, {"estimate": 2**61 + 1}),
        (FAILED, {"estimate": 0.5}),
        (FAILED, {"strategy": STACK.digest}),
        (FAILED, {"version": "3"}),
        (CLOSED, {"instance": 2.0}),
        (CLOSED, {"instance": ...}),
        (CLOSED, {"estimate": 1}),
    ],
)
def test_a_sparse_vector_that_is_not_understood_is_refused(
    event: Opened | Failed | Closed, fields: dict[str, Any]
) -> None:
    body = codec.encode_record(sparse(event))
    end = body.index(b"\n")
    header = {**json.loads(body[:end]), **fields}
    changed = json.dumps({name: value for name, value in header.items() if value is not ...}).encode()
    with pytest.raises(LedgerError):
        codec.decode_record(5, changed + body[end:], strategies)
    for values in (body[end:] + bytes(8), body[end : end + 1] + bytes(24)):
        with pytest.raises(LedgerError):
            codec.decode_record(5, body[:end] + values, strategies)


def allotted(**shares: Fraction) -> Record:
    return record(event=Allotted(shares=tuple(sorted(shares.items()))), values=np.zeros(0, np.int64))


def test_shares_are_fractions_in_lowest_terms() -> None:
    before = allotted(bob=Fraction(2, 4), ann=Fraction(1, 10**60))
    body = codec.encode_record(before)
    assert b'"kind":"allotted","proposer":"tree","question":"abc","run":8,"shares":{"ann":"1/1' in body
    assert codec.decode_record(9, body, strategies).event == before.event
    everything = codec.encode_record(allotted(ann=Fraction(1)))
    assert b'"shares":{"ann":"1"}' in everything
    assert codec.decode_record(9, everything, strategies).event == allotted(ann=Fraction(1)).event
    assert codec.decode_record(9, codec.encode_record(allotted()), strategies).event == Allotted(shares=())


@pytest.mark.parametrize(
    "shares",
    [
        b'{"ann":"2/4"}',
        b'{"ann":"0"}',
        b'{"ann":"1/0"}',
        b'{"ann":"0.5"}',
        b'{"ann":"-1/2"}',
        b'{"ann":" 1/2"}',
        b'{"ann":"1/2\\n"}',
        b'{"ann":0.5}',
        b'{"ann":null}',
        b'{"ann":"1/1%s"}' % (b"0" * 200),
        b'{"ann":"2/3","bob":"2/3"}',
        b'{"":"1/2"}',
        b'["ann"]',
        b"null",
        b'{"ann":"1/2"},"version":1',
    ],
)
def test_shares_that_are_not_understood_are_refused(shares: bytes) -> None:
    good = codec.encode_record(allotted(ann=Fraction(1, 2)))
    assert b'{"ann":"1/2"}' in good
    with pytest.raises(LedgerError):
        codec.decode_record(9, good.replace(b'{"ann":"1/2"}', shares), strategies)


def sealed(sizes: tuple[int, ...] | None) -> Record:
    return record(event=Sealed(through=2, version=3, sizes=sizes), values=np.zeros(0, np.int64))


@pytest.mark.parametrize("sizes", [None, (), (0, 5)])
def test_seals_come_back(sizes: tuple[int, ...] | None) -> None:
    body = codec.encode_record(sealed(sizes))
    assert codec.decode_record(9, body, strategies).event == sealed(sizes).event
    assert codec.encode_record(sealed((0, 5))) == (
        b'{"analyst":"ann","at":1700000000.0,"kind":"sealed","proposer":"tree","question":"abc","run":8,'
        b'"sizes":[0,5],"through":2,"version":3}\n'
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"[0,5]", b"[0,5.0]"),
        (b"[0,5]", b"[0,true]"),
        (b"[0,5]", b"[-1]"),
        (b"[0,5]", b"7"),
        (b'"through":2', b'"through":-1'),
        (b'"through":2', b'"through":"2"'),
        (b'"version":3', b'"version":3,"more":1'),
        (b',"version":3', b""),
        (b'"sizes":[0,5],', b""),
    ],
)
def test_seals_that_are_not_understood_are_refused(old: bytes, new: bytes) -> None:
    good = codec.encode_record(sealed((0, 5)))
    assert old in good
    with pytest.raises(LedgerError):
        codec.decode_record(9, good.replace(old, new), strategies)


@given(rows=st.sets(st.integers(0, 3), min_size=1), scale=st.floats(2.0**-6, 2.0))
def test_a_refinement_comes_back_to_the_last_bit(rows: set[int], scale: float) -> None:
    before = refined(sorted(rows), after=Noise(kind=NoiseKind.LAPLACE, scale=scale))
    body = codec.encode_record(before)
    after = codec.decode_record(5, body, strategies)
    assert isinstance(after.event, Refined)
    assert after.event.rows.tolist() == sorted(rows)
    assert (after.event.block, after.event.version, after.event.measured) == (2, 3, STRATEGY)
    assert (after.event.before, after.event.after.scale) == (LAWS["before"], scale)
    assert after.values.tolist() == [row + 7 for row in sorted(rows)]
    assert codec.encode_record(after) == body
    hold = Hold(fence=1, analyst="ann", expires=0.0, events=(before.event, after.event))
    assert codec.encode_hold(codec.decode_hold(codec.encode_hold(hold), strategies)) == codec.encode_hold(hold)


GOOD_ROWS = {"rows": [0, 2, 3, 4]}


@pytest.mark.parametrize(
    "fields",
    [
        {"rows": []},
        {"rows": [0, 2, 3]},
        {"rows": [2, 0, 3, 4]},
        {"rows": [0, 2, 2, 4]},
        {"rows": [0, 0, 1, 4]},
        {"rows": [-1, 2, 3, 4]},
        {"rows": [0, 2, 3, 5]},
        {"rows": [0, 2**62]},
        {"rows": [0, 2.0, 3, 4]},
        {"rows": "0234"},
        {"rows": ...},
        {"block": "2"},
        {"block": ...},
        {"before": 2.5},
        {"before": "0x1p-1"},
        {"after": "0x1p+2"},
        {"strategy": "0" * 32},
        {"noise": "laplace"},
        {"version": ...},
    ],
)
def test_a_refinement_that_is_not_understood_is_refused(fields: dict[str, Any]) -> None:
    body = codec.encode_record(refined([0, 1, 3]))
    end = body.index(b"\n")
    header = {**json.loads(body[:end]), **fields}
    changed = json.dumps({name: value for name, value in header.items() if value is not ...}).encode()
    with pytest.raises(LedgerError):
        codec.decode_record(5, changed + body[end:], strategies)
    codec.decode_record(5, json.dumps({**json.loads(body[:end]), **GOOD_ROWS}).encode() + body[end:], strategies)


@given(
    scale=st.floats(2.0**-6, 2.0**40),
    at=st.floats(0, 1e12),
    analyst=st.text(st.characters()),
    proposer=st.text(st.characters()),
    run=st.integers(0, 2**70),
    values=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=4, max_size=4),
)
def test_a_record_comes_back_to_the_last_bit(
    scale: float, at: float, analyst: str, proposer: str, run: int, values: list[int]
) -> None:
    before = record(scale, at=at, analyst=analyst, proposer=proposer, run=run, values=np.array(values, np.int64))
    body = codec.encode_record(before)
    after = codec.decode_record(5, body, strategies)
    assert (after.position, after.at, after.analyst) == (5, at, analyst)
    assert (after.question, after.proposer, after.run) == ("abc", proposer, run)
    assert after.values.tolist() == values
    assert isinstance(after.event, Measured)
    assert after.event.noise.scale == scale
    assert codec.encode_record(after) == body


def test_a_record_before_the_log_named_proposers_is_read() -> None:
    """Format 2 had the text itself in the place of its digest, proposer and run."""
    body = changed(purpose="SELECT \ud800", question=..., proposer=..., run=...)
    after = codec.decode_record(5, body, strategies)
    assert (after.question, after.proposer, after.run) == (Purpose("SELECT \ud800", "").question, UNKNOWN, 0)
    assert after.values.tolist() == [0, 1, 2, 3]


@given(expires=st.floats(allow_nan=False), fence=st.integers(0, 2**70), text=st.text(st.characters()))
def test_holds_and_claims_come_back(expires: float, fence: int, text: str) -> None:
    claim = Claim(analyst=text, key=text, question=text, fence=fence, expires=expires)
    assert keyed_answers.decode_claim(keyed_answers.encode_claim(claim)) == claim
    hold = Hold(fence=fence, analyst=text, expires=expires, events=(record().event, Versioned(version=1)))
    body = codec.encode_hold(hold)
    assert codec.encode_hold(codec.decode_hold(body, strategies)) == body


GOOD = codec.encode_record(record())
HEADER = json.loads(GOOD[: GOOD.index(b"\n")])
VALUES = GOOD[GOOD.index(b"\n") :]


def changed(**fields: Any) -> bytes:
    return json.dumps({k: v for k, v in {**HEADER, **fields}.items() if v is not ...}).encode() + VALUES


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\n",
        b"[]" + VALUES,
        b'"text"' + VALUES,
        GOOD[:-1],
        GOOD[:-8],
        GOOD + bytes(8),
        GOOD.replace(b"ann", "änn".encode()),
        changed(kind="refined"),
        changed(kind=...),
        changed(kind=["measured"]),
        changed(noise="uniform"),
        changed(scale=2.5),
        changed(scale="nan"),
        changed(scale="0x0p+0"),
        changed(strategy="0" * 32),
        changed(version="3"),
        changed(version=True),
        changed(version=...),
        changed(at=1),
        changed(at=...),
        changed(analyst=None),
        changed(question=7),
        changed(question=...),
        changed(proposer=None),
        changed(proposer=...),
        changed(run="8"),
        changed(run=True),
        changed(run=...),
        changed(purpose="both"),
        changed(purpose=7, question=..., proposer=..., run=...),
        changed(purpose="before", question=...),
        changed(extra=1),
        changed(kind="versioned", noise=..., scale=..., strategy=..., same_rows=1),
        changed(kind="versioned", noise=..., scale=..., strategy=..., same_rows=True),
        b"[" * 100_000 + VALUES,
    ],
)
def test_a_record_that_is_not_understood_is_refused(body: bytes) -> None:
    with pytest.raises(LedgerError):
        codec.decode_record(5, body, strategies)


def test_a_kind_of_event_that_is_not_known_yet_is_refused() -> None:
    with pytest.raises(LedgerError, match="written by a newer release"):
        codec.decode_record(5, changed(kind="forgotten"), strategies)


@given(body=st.binary(max_size=300))
def test_junk_is_one_kind_of_error(body: bytes) -> None:
    for decode in (
        lambda: codec.decode_record(1, body, strategies),
        lambda: codec.decode_hold(body, strategies),
        lambda: keyed_answers.decode_claim(body),
        lambda: codec.decode_strategy(hashlib.blake2b(body, digest_size=16).hexdigest(), body),
    ):
        with pytest.raises(LedgerError):
            decode()


@given(data=st.data())
def test_a_changed_record_is_refused_or_another_record(data: st.DataObject) -> None:
    body = bytearray(GOOD)
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(GOOD) - 1))] = data.draw(st.integers(0, 255))
    try:
        assert isinstance(codec.decode_record(5, bytes(body), strategies), Record)
    except LedgerError:
        return


@pytest.mark.parametrize("body", [b"{}", b"[]", b"1", b"null", b'{"expires":"x"}', b'{"expires":"0x1p+0"}', b"\xff"])
def test_holds_and_claims_that_are_not_understood_are_refused(body: bytes) -> None:
    with pytest.raises(LedgerError):
        keyed_answers.decode_claim(body)
    with pytest.raises(LedgerError):
        codec.decode_hold(body, strategies)


def test_a_strategy_is_known_by_its_bytes() -> None:
    body = codec.encode_strategy(STRATEGY)
    assert codec.decode_strategy(STRATEGY.digest, body).digest == STRATEGY.digest
    with pytest.raises(LedgerError, match="does not match its digest"):
        codec.decode_strategy(STRATEGY.digest, body[:-1] + b"\x01")

"""Hand-written monsters: what a hostile or unlucky person would send, once for each door that text or bytes come in by.

Fuzzers start from these, and `test_fuzz_seeds.py` sends each of them in as it is.
"""

from __future__ import annotations

import json
import struct

import numpy as np

from bursar.core.accounting import Measured, Noise, NoiseKind, Versioned
from bursar.core.extensions.transform import Transform
from bursar.core.ledger import Claim, Hold, Record, keyed_answers
from bursar.core.ledger import record_codec as codec
from bursar.core.queries import LinearMap, Mask, Product, Stack, Steps, encode

NUMBERS = {
    "exponent bomb": "1e999999999",
    "negative exponent bomb": "1e-999999999",
    "exponent beyond any machine": "1e" + "9" * 400,
    "integer bomb": "9" * 10_000,
    "longest fraction": "0." + "0" * 3_000 + "1",
    "hexadecimal bomb": "0x" + "f" * 5_000,
    "smallest double": "5e-324",
    "largest double": "1.7976931348623157e308",
    "just beyond 64 bits": str(2**64),
    "minus zero": "-0.0",
    "not a number": "nan",
    "infinity": "inf",
    "other digits": "١٢٣",
    "underscores": "1_000_000",
}

COUNT = "SELECT COUNT(*) FROM people"

SQL = {
    "plain": f"{COUNT} WHERE age = 65 AND sex IN ('F', 'M')",
    "grouped": 'SELECT sex, COUNT(*) n FROM people p WHERE NOT p.age BETWEEN 1 AND 3 GROUP BY sex, "Home Town"',
    "explained": f"EXPLAIN {COUNT} /*+ error(50) confidence(95%) */ WHERE \"Home Town\" < DATE '2024-02-01';",
    "no text": "",
    "blanks": " \n\t" * 1_000,
    "brackets": f"{COUNT} WHERE " + "(" * 4_000 + "age = 1" + ")" * 4_000,
    "brackets left open": f"{COUNT} WHERE " + "(" * 8_000,
    "deep but short": f"{COUNT} WHERE " + "(" * 60 + "age = 1" + ")" * 60,
    "nots": f"{COUNT} WHERE " + "NOT " * 2_000 + "age = 1",
    "signs": f"{COUNT} WHERE age = " + "-" * 1_000 + "1",
    "spaced signs": f"{COUNT} WHERE age = " + "- " * 4_000 + "1",
    "cases": f"{COUNT} WHERE " + "CASE WHEN " * 800,
    "casts": f"{COUNT} WHERE age = 1" + "::INT" * 1_500,
    "indices": f"{COUNT} WHERE age" + "[1]" * 2_500 + " = 1",
    "sub-selects": "SELECT COUNT(*) FROM " + "(SELECT * FROM " * 500 + "people" + ")" * 500,
    "dots": f"{COUNT} WHERE " + "a." * 4_000 + "age = 1",
    "ands": f"{COUNT} WHERE " + " AND ".join(["age = 1"] * 650),
    "ors": f"{COUNT} WHERE " + " OR ".join(f"age = {n}" for n in range(600)),
    "joins": "SELECT COUNT(*) FROM people" + " JOIN b" * 60,
    "types": f"{COUNT} WHERE " + "DATE(" * 19 + ")" * 19,
    "unions": " UNION ".join([COUNT] * 250),
    "many short items": f"{COUNT} WHERE age IN (" + ",".join(["1"] * 4_000) + ")",
    "100,000 items": f"{COUNT} WHERE age IN (" + ",".join(map(str, range(100_000))) + ")",
    "a million letters": "A" * 1_000_000,
    "long name": f"{COUNT} WHERE {'a' * 8_000} = 1",
    "long quoted name": f'SELECT COUNT(*) FROM "{"p" * 8_000}"',
    "long alias": f"SELECT COUNT(*) AS {'n' * 8_000} FROM people",
    "long string": f"{COUNT} WHERE sex = '{'x' * 8_000}'",
    "many columns": "SELECT COUNT(*), " * 500 + "COUNT(*) FROM people",
    "nul": f"{COUNT} WHERE sex = 'F\0' AND age\0 = 1",
    "lone surrogate": f"{COUNT} WHERE sex = '\ud800' AND \udfff = 1",
    "astral": f"{COUNT} WHERE sex = '\U0010ffff' AND \U0001f4a9 = 1",
    "turned around": f"{COUNT} WHERE sex = '\u202e\u2066' -- \u2028\u2029\x85",
    "open quote": f"{COUNT} WHERE sex = 'F",
    "open comment": f"{COUNT} /* " + "/* " * 2_000,
    "comments": f"{COUNT} " + "/**/" * 2_000,
    "hints": f"{COUNT} " + "/*+ error(5) */" * 400,
    "lines": f"{COUNT}" + "\n" * 7_000 + "WHERE",
    "dollar quotes": f"{COUNT} WHERE sex = $tag$F$tag$ AND age = $1 AND age = ?",
    "day that never was": f"{COUNT} WHERE \"Home Town\" = DATE '2023-02-29'",
    "year 0": f"{COUNT} WHERE \"Home Town\" = DATE '0000-01-01'",
    "year 10000": f"{COUNT} WHERE \"Home Town\" < DATE '10000-01-01'",
    "day before Christ": f"{COUNT} WHERE \"Home Town\" < DATE '-4712-01-01'",
    "first day of the calendar": f"{COUNT} WHERE \"Home Town\" <= DATE '0001-01-01'",
    "last day of the calendar": f"{COUNT} WHERE \"Home Town\" >= '9999-12-31'",
    "time": f"{COUNT} WHERE \"Home Town\" = TIMESTAMP '2024-01-01 25:61:61'",
    "interval": f"{COUNT} WHERE \"Home Town\" > DATE '2024-01-01' + INTERVAL 99999999999 YEAR",
    "attach": "ATTACH '/etc/passwd' AS x; SELECT 1",
    "pragma": "PRAGMA database_list",
    "two statements": f"{COUNT}; DROP TABLE people; --",
    "copy": f"COPY ({COUNT}) TO '/tmp/x'",
    "reading a file": "SELECT COUNT(*) FROM read_csv('/etc/passwd')",
    **{f"age against {name}": f"{COUNT} WHERE age < {number}" for name, number in NUMBERS.items()},
    **{f"age against text of {name}": f"{COUNT} WHERE age >= '{number}'" for name, number in NUMBERS.items()},
}

CLAUSES = {
    "plain": "WITH ERROR 50 CONFIDENCE 95%",
    "a share": "WITH RMSE 0.5%",
    "a price": "WITH EPSILON .25 CONFIDENCE 0.999",
    "another unit": "WITH RHO 0.01",
    "comment": "/*+ error(50%), confidence(.9) */",
    "nothing": "WITH",
    "twice": "WITH ERROR 5 ERROR 6 CONFIDENCE 95% CONFIDENCE 96%",
    "clause and comment": "/*+ error(5) */ WITH ERROR 5",
    "many terms": "WITH " + "ERROR 5 " * 900,
    "no room for doubt": "WITH ERROR 5 CONFIDENCE 99.9999999999999999999%",
    "nothing but doubt": "WITH ERROR 5 CONFIDENCE 1e-300",
    "barely doubt": "WITH ERROR 5 CONFIDENCE 1e-17",
    "hardly any doubt": "WITH ERROR 5 CONFIDENCE 0.9999999999999999",
    "brackets": "/*+ error" + "(" * 3_000 + "5" + ")" * 3_000 + " */",
    "nul": "WITH ERROR\x005",
    "surrogate": "WITH ERROR 5\ud800",
    **{f"error of {name}": f"WITH ERROR {number}" for name, number in NUMBERS.items()},
    **{f"rmse of {name}": f"WITH RMSE {number}%" for name, number in NUMBERS.items()},
    **{f"price of {name}": f"WITH EPSILON {number}" for name, number in NUMBERS.items()},
    **{f"confidence of {name}": f"WITH ERROR 5 CONFIDENCE {number}%" for name, number in NUMBERS.items()},
    **{f"hint of {name}": f"/*+ error({number}) confidence({number}%) */" for name, number in NUMBERS.items()},
}

CONFIG = """\
dataset = "people"
[partition]
column = "joined"
seal = "calendar"
grace_days = 2
[source]
path = "people.csv"
table = "people"
max_rows = 1000
public_size = 500
[privacy]
unit = { column = "person" }
max_contributions = 2
neighbours = "add-remove"
pace = 0.001
[budget]
epsilon = 1.0
delta = 1e-6
[goal]
error = "2%"
confidence = "95%"
contract = "per-query"
[columns.sex]
values = ["F", "M"]
outside = { as = "F" }
[columns.age]
lower = 0
upper = 99
null = "other"
[columns.income]
edges = { from = 0, to = 0.5, step = 0.1 }
[columns.joined]
first = 2020-01-01
last = "2023-12-31"
by = "month"
"""


def _with(old: str, new: str) -> str:
    if CONFIG.count(old) != 1:
        raise ValueError(f"{old!r} does not stand once in the config")
    return CONFIG.replace(old, new)


TOML: dict[str, str | bytes] = {
    "plain": CONFIG,
    "no text": "",
    "byte order mark": b"\xef\xbb\xbf" + CONFIG.encode(),
    "not UTF-8": CONFIG.encode() + b"# \xff\xfe",
    "UTF-16": CONFIG.encode("utf-16"),
    "nul": CONFIG + "\0",
    "nul in a name": _with('table = "people"', 'table = "pe\\u0000ople"'),
    "escaped surrogate": _with('table = "people"', 'table = "\\ud800"'),
    "raw surrogate": CONFIG.encode() + b'\n[columns."\xed\xa0\x80"]\nvalues = [1]',
    "carriage returns": CONFIG.replace("\n", "\r"),
    "open brackets": "a = " + "[" * 200_000,
    "nested lists": "a = " + "[" * 50_000 + "]" * 50_000,
    "nested tables": "a = " + "{ a = " * 20_000,
    "dots in a key": "a" + ".a" * 2_000 + " = 1",
    "many dots in a key": "a" + ".a" * 50_000 + " = 1",
    "dots in a section": "[" + "a." * 2_000 + "a]\nb = 1",
    "quoted dots": ".".join(['""'] * 1_500) + " = 1",
    "many sections": "".join(f"[a{n}]\n" for n in range(20_000)),
    "many lists of sections": "[[columns]]\n" * 20_000,
    "many columns": CONFIG + "".join(f"[columns.c{n}]\nvalues = [1]\n" for n in range(1_000)),
    "long name": CONFIG + f"[columns.{'c' * 100_000}]\nvalues = [1]\n",
    "long text": _with('dataset = "people"', f'dataset = "{"x" * 100_000}"'),
    "long unknown key": "k" * 100_000 + " = 1",
    "many unknown keys": "".join(f"k{n} = 1\n" for n in range(20_000)),
    "many values": _with('["F", "M"]', "[" + ",".join(f'"{n}"' for n in range(50_000)) + "]"),
    "the same value again": _with('["F", "M"]', "[" + '"F",' * 50_000 + "]"),
    "endless text": 'a = """' + "\\\\" * 100_000,
    "quotes": "a = " + '"' * 100_001,
    "a billion bins": _with("step = 0.1", "step = 1e-10"),
    "steps too small to see": _with("from = 0, to = 0.5, step = 0.1", "from = 1e18, to = 2e18, step = 1"),
    "steps out of proportion": _with("from = 0, to = 0.5, step = 0.1", "from = -1e308, to = 1e308, step = 5e-324"),
    "2^53 ages": _with("upper = 99", f"upper = {2**53 - 1}"),
    "day that never was": _with("first = 2020-01-01", "first = 2023-02-29"),
    "year 0": _with("first = 2020-01-01", 'first = "0000-01-01"'),
    "first day of the calendar": _with("first = 2020-01-01", "first = 0001-01-01"),
    "last day of the calendar": _with('last = "2023-12-31"', "last = 9999-12-31"),
    "year 10000": _with('last = "2023-12-31"', 'last = "10000-01-01"'),
    "every day of the calendar": _with(
        'first = 2020-01-01\nlast = "2023-12-31"\nby = "month"', 'first = 0001-01-01\nlast = 9998-12-31\nby = "day"'
    ),
    "time zone": _with("first = 2020-01-01", "first = 2020-01-01T00:00:00+23:59"),
    "patience": _with("pace = 0.001", "pace = 1e9"),
    "other digits": _with('error = "2%"', 'error = "٢%"'),
    **{f"rows of {name}": _with("max_rows = 1000", f"max_rows = {number}") for name, number in NUMBERS.items()},
    **{f"budget of {name}": _with("epsilon = 1.0", f"epsilon = {number}") for name, number in NUMBERS.items()},
    **{f"share of {name}": _with('error = "2%"', f'error = "{number}%"') for name, number in NUMBERS.items()},
    **{f"age up to {name}": _with("upper = 99", f"upper = {number}") for name, number in NUMBERS.items()},
    **{f"step of {name}": _with("step = 0.1", f"step = {number}") for name, number in NUMBERS.items()},
    **{f"values of {name}": _with('["F", "M"]', f"[{number}]") for name, number in NUMBERS.items()},
}

STRATEGIES: dict[str, LinearMap] = {
    "cells": Product((Mask(("age",), (4,), Steps.identity(4)),)),
    "grid": Product(
        (
            Mask(("age", "sex"), (3, 2), Steps.dense([[1, 0, -2, 0, 0, 7], [0, 0, 0, 0, 0, 1]])),
            Mask(("region",), (5,), Steps.total(5)),
        )
    ),
    "nothing": Product(()),
    "stack": Stack(
        (
            Product((Mask(("age",), (9,), Steps.ranges([0, 3, 4], [9, 3, 5], 9)),)),
            Product((Mask(("b",), (1,), Steps.total(1)),)),
        )
    ),
    "transform": Transform(
        column="age",
        size=9,
        first=1,
        start=1,
        period=8,
        shift=4,
        max_rows=100,
        row_weights=np.array([16, 0, 9, 1, 16, 2, 5]),
        cell_weights=np.array([1, 0, 16, 3]),
    ),
}
BY_DIGEST = {strategy.digest: strategy for strategy in STRATEGIES.values()}


def strategy_bytes(lengths: object, sizes: object = (4,), *, attrs: object = ("age",), numbers: bytes = b"") -> bytes:
    """A stored strategy of one mask whose header says what it is told to say."""
    shape = {"attrs": attrs, "lengths": lengths, "sizes": sizes}
    header = json.dumps({"kind": "product", "products": [[shape]]}, sort_keys=True, separators=(",", ":")).encode()
    return len(header).to_bytes(8, "little") + header + numbers


DECODED = {
    **{f"good {name}": encode(strategy) for name, strategy in STRATEGIES.items()},
    "no bytes": b"",
    "header beyond the end": (2**64 - 1).to_bytes(8, "little") + b"{}",
    "header of a quintillion": (10**18).to_bytes(8, "little"),
    "nested header": (200_000).to_bytes(8, "little") + b"[" * 200_000,
    "integer bomb": (10_000).to_bytes(8, "little") + b"9" * 10_000,
    "a quintillion numbers": strategy_bytes([10**18, 10**18]),
    "minus one number": strategy_bytes([-1, -1]),
    "half a number": strategy_bytes([1.5, 1e300]),
    "lengths beyond 64 bits": strategy_bytes([2**70, 2**70]),
    "infinite lengths": strategy_bytes([float("inf"), float("nan")]),
    "cells beyond 64 bits": strategy_bytes([1, 0], [2**40, 2**40], attrs=["a", "b"], numbers=bytes(8)),
    "a googol of cells": strategy_bytes([1, 0], [10**100], numbers=bytes(8)),
    "a quintillion cells": strategy_bytes([1, 0], [10**18], numbers=bytes(8)),
    "a thousand columns": strategy_bytes([1, 0], [1] * 1000, attrs=[f"c{n}" for n in range(1000)], numbers=bytes(8)),
    "columns without names": strategy_bytes([1, 0], attrs=[1, None], numbers=bytes(8)),
    "long name": strategy_bytes([1, 0], attrs=["a" * 100_000], numbers=bytes(8)),
    "nul and surrogate": strategy_bytes([1, 0], attrs=["\0\ud800"], numbers=bytes(8)),
    "coefficients beyond 2^60": strategy_bytes([2, 1], numbers=np.array([0, 1, 0, 2**61], "<i8").tobytes()),
    "same cell twice": strategy_bytes([2, 2], numbers=np.array([0, 2, 1, 1, 5, 5], "<i8").tobytes()),
}


def _event() -> Measured:
    return Measured(strategy=STRATEGIES["cells"], noise=Noise(kind=NoiseKind.LAPLACE, scale=2.5), version=1)


def _record(**changes: object) -> bytes:
    """A good record, some of whose fields say something else."""
    why = {"analyst": "ann", "question": "abc", "proposer": "tree", "run": 8}
    facts = {"position": 1, "at": 1.5, **why, "event": _event(), "values": np.arange(4)}
    header, _, values = codec.encode_record(Record(**facts)).partition(b"\n")
    return json.dumps({**json.loads(header), **changes}).encode() + b"\n" + values


RECORDS = {
    "good": _record(),
    "good version": codec.encode_record(
        Record(
            position=1,
            at=0.0,
            analyst="",
            question="",
            proposer="",
            run=0,
            event=Versioned(version=1),
            values=np.zeros(0, np.int64),
        )
    ),
    "of an earlier format": _record(purpose="SELECT 1"),
    "infinite time": _record(at=float("inf")),
    "scale without an end": _record(scale="0x1p+" + "9" * 5_000),
    "scale of many digits": _record(scale="0x" + "f" * 100_000),
    "infinite scale": _record(scale="inf"),
    "version beyond 64 bits": _record(version=2**70),
    "long name": _record(analyst="a" * 1_000_000),
    "nul and surrogate": _record(analyst="\0\ud800", strategy="\0\ud800"),
    "integer bomb": b'{"version":' + b"9" * 10_000 + b"}\n",
    "exponent bomb": b'{"at":1e999999999}\n',
    "nested": b'{"kind":' + b"[" * 200_000 + b"\n",
    "many keys": b"{" + b",".join(b'"k%d":1' % n for n in range(20_000)) + b"}\n",
    "no header": b"\n" + bytes(800_000),
}

HOLDS = {
    "good": codec.encode_hold(Hold(fence=1, analyst="ann", expires=9.5, events=(_event(), Versioned(version=2)))),
    "many events": b'{"events":[' + b",".join([b"{}"] * 50_000) + b"]}",
    "events in one another": b'{"events":' + b"[" * 100_000,
    "never": b'{"analyst":"a","events":[],"expires":"0x1p+99999999999","fence":1}',
}
CLAIMS = {
    "good": keyed_answers.encode_claim(Claim(analyst="ann", key="k", question="q", fence=7, expires=1e12)),
    "fence beyond 64 bits": b'{"analyst":"a","expires":"0x1p+0","fence":'
    + b"9" * 4_000
    + b',"key":"k","question":"q"}',
    "wrong types": b'{"analyst":[],"expires":"nan","fence":"x","key":{},"question":null}',
}

WORDS = [
    *("", " ", "-", "--", "---", "-d", "-dx", "-h", "-1", "=", "--data", "--data=", "--json", "--json=1", "--help"),
    *("--version", "--nonsense", "--within", "--confidence", "--rmse", "--epsilon", "--rho", "--max-cost", "--key"),
    *("--as", "--last", "--same-rows", "--expect", "--trials", "--rows", "--dir", "0", "0%", "%", "50", "2%", "1e-300"),
    *(
        "1e300",
        "99.99999999999999999%",
        "bursar.toml",
        "missing.toml",
        "broken.toml",
        ".",
        "..",
        "/",
        "~",
        "*",
        "$HOME",
    ),
    *(
        "/dev/null",
        "/dev/zero",
        "people.csv",
        "bursar.bursar",
        "@file",
        "\n",
        "\x1b[31m",
        "\0",
        "\udc80\udcff",
        "\ud800",
    ),
    *("é", "\U0001f4a9", "a" * 5_000, "x/" * 3_000, "SELECT", "SELECT COUNT(*) FROM people"),
    *NUMBERS.values(),
]
"""Words of a command line."""


def _bind(*values: bytes | None) -> bytes:
    sized = [struct.pack("!i", -1) if v is None else struct.pack("!i", len(v)) + v for v in values]
    return b"B\0\0" + struct.pack("!hhh", 1, 1, len(values)) + b"".join(sized) + struct.pack("!h", 0)


WIRE = {
    "plain": b"QSELECT COUNT(*) FROM people WHERE age > 30; SELECT $$a;b$$\0",
    "no text": b"",
    "prepared": b"Ps\0SELECT COUNT(*) FROM people WHERE age = ANY($1::int[]) WITH ERROR 5\0\0\1\0\0\3\xef",
    "bound": _bind(b"\1", b"abc", b"a", b"name", b"\0" * 8, b"\0\1", b"\0\0\0\1", b"text", None),
    "many values": b"B\0\0\0\0\x7f\xff",
    "a long value": b"B\0\0\0\0\0\1\x7f\xff\xff\xff",
    "startup": b"\0\0\3\0\0user\0ana\0database\0demo\0options\0-c bursar.error=50\0\0",
    "encryption": b"\0\4\xd2\x16\x2f",
    "cancel": b"\0\4\xd2\x16\x2e\0\0\0\1\0\0\0\2",
    "scram": b"pn,,n=,r=abcdefghijklmnop",
    "describe": b"DSname\0",
    "cursor": b'QDECLARE "c" CURSOR WITH HOLD FOR SELECT 1; FETCH 5 FROM c; CLOSE c\0',
    "copy": b"QCOPY (SELECT sex, COUNT(*) FROM people GROUP BY sex) TO STDOUT (FORMAT binary)\0",
    "joins": b"QSELECT 1 FROM a" + b" JOIN b" * 500 + b"\0",
    "brackets": b"QSELECT " + b"(" * 5_000 + b"1" + b")" * 5_000 + b"\0",
    "types": b"QSELECT " + b"DATE(" * 30 + b"1" + b")" * 30 + b"\0",
    "indices": b"QSELECT a" + b"[1]" * 5_000 + b"\0",
    "many statements": b"Q" + b"SELECT 1;" * 5_000 + b"\0",
    "comments": b"Q" + b"/* " * 10_000 + b"\0",
    "dollars": b"QSELECT " + b"$a$ $b$ " * 2_000 + b"\0",
    "cases": b"QSELECT " + b"CASE WHEN " * 2_000 + b"\0",
}
"""A message of PostgreSQL's wire: its kind, 0 for the first of a connection, and what stands behind its length."""

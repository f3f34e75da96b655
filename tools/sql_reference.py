"""The SQL reference, made from the allow-list: `python tools/sql_reference.py` writes docs/sql.md.

`sql_examples.sql` beside it holds questions under headings. Each is put to the real parser and to the columns of the
demo data: what is accepted is shown as available, what is refused is shown with the reason and the rewrite that
somebody would get who asks. Where the allow-list grows, an example moves from one side to the other by itself. A node
of the list that no example has is reported (`missing`), and so is a reason for refusing that none of them gets.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB

from bursar.compile.compile_cache import CompileCache
from bursar.compile.compiler import MOST_ANSWERS, MOST_COUNTS
from bursar.config import Config, load
from bursar.curate.demo import generate
from bursar.errors import QueryError
from bursar.rewrite.suggest import suggest
from bursar.sql import aggregates, parse, syntax, tokens
from bursar.sql import tokens as script
from bursar.sql.accuracy import cut_accuracy
from bursar.sql.parameters import resolve_day
from bursar.sql.tokens import statement_tokens

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "sql.md"
EXAMPLES = Path(__file__).with_name("sql_examples.sql")

UNREACHABLE = {
    "DateTrunc": "made of a cast of a column, which is refused",
    "DateTrunc.this": "as above",
    "DateTrunc.unit": "as above",
    "WITH TOTALS is not available; ROLLUP adds a line for all rows": "WITH begins the accuracy",
    "days are written out, as in DATE '2024-12-31'": "NOW() is a constant before a question is parsed",
}
"""What is on the lists, and no question gets to."""

HEAD = """\
# The SQL you can write

<!-- Made by tools/sql_reference.py from the allow-list and tools/sql_examples.sql; changes here are lost. -->

A question is one SELECT over the one table, in the SQL of DuckDB. What is not on this page is refused, at no cost, with
the place, the reason and, where there is one, a question that works. The examples are about the demo data
(`bursar demo`); for the sake of LIKE, `outside = { as = "single" }` in `[columns.marital]` of its config
is added.
"""

ASKED_ON = datetime(2023, 6, 30, tzinfo=UTC)
"""What NOW() is in the examples."""

OUTSIDE = """\
## Parameters, and the day

In Python, `?`, `$1` and `:name` stand for values, which come as a list or by name. They are numbers, text, truth
values, days or None, and a list of them behind IN. They are put into the question after it has been read, so that no
value can be taken for SQL; a value too many, too few or of another type is refused.

```python
from datetime import date

db.query("SELECT COUNT(*) FROM people WHERE region IN (?) AND age >= ?", [["Eastvale", "Lakeside"], 65], within=50)
db.query("SELECT COUNT(*) FROM people WHERE joined < :day", {"day": date(2023, 1, 1)}, within=50)
with db.batch(within=50) as batch:
    for sex in ("F", "M"):
        batch.query("SELECT COUNT(*) FROM people WHERE sex = $1", [sex])
```

`NOW()`, `CURRENT_DATE`, `CURRENT_TIMESTAMP`, `TODAY()` and `GETDATE()` are the day in UTC on which the question is
asked; the answer says which one that was, and the log has the question with that day in it. On another day it is
another question: it may cost something again, and a key that it was asked under belongs to the first.
"""

DESCRIBED = """\
## What there is

`DESCRIBE people` has a line for each column: its type, whether NULL can occur, and what is declared about it.
`DESC people`, `SHOW COLUMNS FROM people` and `PRAGMA table_info('people')` are the same; `SHOW TABLES` lists tables.
They are answered from the config, for nothing, and need no accuracy; neither does any other question of which nothing
is measured, such as `SELECT DISTINCT region FROM people`.
"""

PEOPLE = """\
## One number of each person

Where the config declares a unit column (`unit = { column = "person" }`), an inner SELECT that groups by it makes one
number of each person, a COUNT or a SUM over their own rows, and the outer one counts people by it, or adds it up:

```
SELECT AVG(total) FROM (SELECT person, LEAST(SUM(cost), 500) AS total FROM visits GROUP BY person);
SELECT COUNT(*) FROM (SELECT person, COUNT(*) AS n FROM visits GROUP BY person) WHERE n > 5;
SELECT n, COUNT(*) FROM (SELECT person, LEAST(COUNT(*), 10) AS n FROM visits GROUP BY person) GROUP BY n;
SELECT ward, SUM(total) FROM (SELECT person, ward, SUM(cost) AS total FROM visits GROUP BY person, ward) GROUP BY ward;
SELECT CASE WHEN n > 5 THEN 'often' ELSE 'rarely' END AS comes, COUNT(*) AS people
  FROM (SELECT person, COUNT(*) AS n FROM visits GROUP BY person) GROUP BY comes;
SELECT FLOOR(total / 100) * 100 AS hundreds, COUNT(*)
  FROM (SELECT person, SUM(cost) AS total FROM visits GROUP BY person) GROUP BY hundreds;
SELECT MEDIAN(total) FROM (SELECT person, LEAST(SUM(cost), 500) AS total FROM visits GROUP BY person);
SELECT STDDEV(n), MAX(n) FROM (SELECT person, LEAST(COUNT(*), 10) AS n FROM visits GROUP BY person);
```

The inner SELECT has FROM, WHERE and GROUP BY, and may be named in WITH. Of several numbers in it, the question around
it is about one. `LEAST` and `GREATEST` around the number are its bounds: what a person beyond them counts as. Where
none are given, the declared range of the column and `max_contributions` set them. The price follows from the bounds, so
closer ones are cheaper; it does not grow with the
rows of a person. Outside, COUNT(*), SUM, AVG, MEDIAN, quantiles, STDDEV, VARIANCE, MIN and MAX can be asked for, with
conditions that leave one range of the number, and in groups of it, of steps of it, of a CASE over it, and of what the
inner SELECT groups by.
The CASE may as well stand inside. Groups come in the order of the number, and who is beyond its upper bound is in the
last one. People of whom every value is NULL have no sum: they are in no group but that of a CASE with ELSE, which has
to hold 0 as well where there can be such people, and LEAST and GREATEST make no number for them. How many *people*
have more rows than `max_contributions` can be asked (the second question); how many *rows* are left out cannot, since
one person may have any number of them. Quantiles are read from the people at each number, or at each of 256 steps
between the bounds, and the answer says by how much that can be off: the closer the bounds, the finer and the cheaper.
So are variances, MIN and MAX, at 32 steps; their bars add up over all of them, so that few numbers are far cheaper:
`LEAST(COUNT(*), 10)`.
"""

JOINED = """\
## Joined tables

Where the config declares further tables (`[tables.*]`, [config.md](config.md)), their columns can be named as they are,
or with JOIN and LEFT JOIN and the declared condition, in ON or USING:

```
SELECT p.sex, COUNT(*) FROM visits v JOIN people p ON v.person = p.person GROUP BY p.sex;
SELECT floor, AVG(cost) FROM visits LEFT JOIN wards ON visits.ward = wards.id GROUP BY floor;
```

A question is about rows of the table under `[source]`, whatever is joined to it; where the config has several private
tables with rows of their own ([tables.md](tables.md)), about rows of the one that the others are joined to. Joins
of a table with itself, of rows of different people, and those that keep rows of the other table that nobody has, are
refused; so is one number over two private tables, which is made of two answers.
"""

LIMITS = f"""\
## Limits

| | at most |
|---|---|
| length of a question | {tokens.LARGEST_TEXT:,} bytes |
| brackets, CASEs, NOTs inside one another | {tokens.DEEPEST} |
| items of a list | {tokens.MOST_ITEMS} |
| items of GROUP BY | {tokens.MOST_KEYS} |
| sub-selects of one WITH | {tokens.MOST_NAMED_SELECTS} |
| operators and casts in a row, AND and OR aside | {tokens.LONGEST_CHAIN} |
| aggregates in one formula | {aggregates.LONGEST_FORMULA} |
| counts and sums behind one answer | {MOST_ANSWERS:,}; {MOST_COUNTS:,} where every output is one itself |
| questions in a file for `bursar batch` | {script.MOST_QUESTIONS:,} |
"""


@dataclass(frozen=True, kw_only=True)
class Example:
    """A question with what is said about it, and the refusal that it meets, if any."""

    sql: str
    note: str
    refusal: QueryError | None


@dataclass(frozen=True, kw_only=True)
class Section:
    title: str
    intro: str
    examples: tuple[Example, ...]


@cache
def sections() -> tuple[Section, ...]:
    """The examples, each put to the parser and to the columns of the demo."""
    config = _demo()
    found = []
    for part in re.split(r"^-- # ", EXAMPLES.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        head, *rest = part.strip().split("\n\n")
        title, *intro = head.split("\n")
        asked = tuple(_example(block, config) for block in rest)
        found.append(Section(title=title, intro="\n".join(line[3:] for line in intro), examples=asked))
    return tuple(found)


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for section in sections():
        shown = [example for example in section.examples if example.refusal is None]
        if shown:
            questions = "\n\n".join(f"-- {example.note}\n{example.sql};" for example in shown)
            parts.append(f"## {section.title}\n\n{section.intro}\n\n```sql\n{questions}\n```\n")
    refused = [example for section in sections() for example in section.examples if example.refusal is not None]
    rows = "\n".join(_row(example) for example in refused)
    intro = "Each is answered with the reason and, where one was found, a question that is accepted."
    parts.append(f"## Not available\n\n{intro}\n\n| question | reason | instead |\n|---|---|---|\n{rows}\n")
    return "\n".join([*parts, OUTSIDE, DESCRIBED, PEOPLE, JOINED, LIMITS])


def missing() -> list[str]:
    """What the page leaves out: nodes and arguments of the allow-list, and reasons for refusing them."""
    examples = [example for section in sections() for example in section.examples]
    seen = {pair for example in examples if _is_readable(example.sql) for pair in _nodes(example.sql)}
    nodes = {(kind, None) for kind in syntax.ALLOWED}
    arguments = {(kind, name) for kind, names in syntax.ALLOWED.items() for name in names}
    unseen = sorted(f"{kind.__name__}.{name}" if name else kind.__name__ for kind, name in (nodes | arguments) - seen)
    said = {example.refusal.reason for example in examples if example.refusal is not None}
    found = [*unseen, *(reason for reason in _reasons() if reason not in said)]
    return [name for name in found if name not in UNREACHABLE]


def demo(folder: Path, *, rows: int) -> Path:
    """The data that the examples are about, and their config, as the head of the page says."""
    config = generate(folder / "people.csv", rows=rows)
    text = config.read_text(encoding="utf-8")
    config.write_text(
        text.replace("[columns.marital]", '[columns.marital]\noutside = { as = "single" }'), encoding="utf-8"
    )
    return config


def _demo() -> Config:
    with tempfile.TemporaryDirectory() as folder:
        return load(demo(Path(folder), rows=10))


def _example(block: str, config: Config) -> Example:
    lines = block.split("\n")
    note = " ".join(line[3:] for line in lines if line.startswith("-- "))
    sql = "\n".join(line for line in lines if not line.startswith("-- "))
    try:
        reader = CompileCache(config.domain, config.table)
        reader.compile(reader.parse(resolve_day(sql, lambda: ASKED_ON).text))
    except QueryError as refusal:
        return Example(sql=sql, note=note, refusal=suggest(sql, refusal, config.domain, config.table))
    return Example(sql=sql, note=note, refusal=None)


def _is_readable(sql: str) -> bool:
    """Whether the allow-list lets a question pass, whatever columns there are."""
    try:
        return bool(parse(sql).aggregates)
    except QueryError:
        return False


def _row(example: Example) -> str:
    refusal: Any = example.refusal
    instead = f"`{refusal.rewrite}`" if refusal.rewrite else ""
    cells = (f"`{' '.join(example.sql.split())}`", refusal.reason, instead)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _nodes(sql: str) -> Iterator[tuple[type, str | None]]:
    """Every node of a question, with each of the arguments that it has."""
    words, _ = statement_tokens(sql)
    words = cut_accuracy(sql, words).tokens
    for node in DuckDB().parser().parse(words, sql)[0].walk():
        yield type(node), None
        yield from ((type(node), name) for name, value in node.args.items() if value not in (None, False, [], ""))


def _reasons() -> list[str]:
    """What the allow-list says of things that it refuses, but for those that have been allowed since."""
    clauses = [why for name, (_, why) in syntax._CLAUSES.items() if name not in syntax.ALLOWED[exp.Select]]
    kinds = [why for kinds, why in syntax._REASONS if not all(kind in syntax.ALLOWED for kind in kinds)]
    return list(dict.fromkeys([*clauses, *kinds]))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    for line in missing():
        print(f"no example for: {line}")

"""What the longest texts take to be compiled or refused: `python -m benchmarks.texts [--quick] [--kind WORD]`.

A text may have 8,192 bytes, and nobody should keep a server busy by sending such texts. Each kind here is one piece
that is repeated, with changing numbers, until there is no room left: a long CASE, conditions in a row, many outputs,
many SELECTs. A third of them are refused, which includes the search for a question that works instead. They are about
the demo's table and about one with long columns. Nothing is planned and nothing is measured. `cpu_s` is CPU, `ratio`
what that is to a plain GROUP BY, read and compiled in the same run; `over` is how many take more than .3 s. `--quick`
takes every third kind about the demo's table.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness import Figures, options, report
from benchmarks.sql import verdict
from bursar.config import Config
from bursar.config.load import load
from bursar.curate.demo import generate

LONGEST = 8192

WIDE = """\
dataset = "wide"

[source]
path = "wide.parquet"
table = "wide"
max_rows = 10000000
public_size = 100000

[privacy]
unit = "row"

[budget]
epsilon = 1.0

[goal]
error = "1%"

[columns.amount]
lower = 0
upper = 249999

[columns.score]
lower = 0
upper = 4999
outside = "other"

[columns.price]
edges = {{ from = 0, to = 5000, step = 1 }}

[columns.day]
first = 1990-01-01
last = 2029-12-31
by = "day"

[columns.city]
values = [{cities}]

[columns.code]
values = [{codes}]

[columns.part]
lower = 0
upper = 49
"""
"""A table of long columns; texts of its columns are like those of a town or a product."""


LONG = 0.3
"""CPU seconds that no text should take."""

SHOWN = 10
"""Of the slowest texts."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A piece of text that is repeated within a frame, n for its number and k for one that comes back."""

    piece: str
    frame: str
    joined: str = ", "

    @property
    def text(self) -> str:
        """As many pieces as there is room for."""
        pieces: list[str] = []
        length = len(self.frame.encode()) - 2
        for piece in self.numbered():
            length += len(piece.encode()) + len(self.joined)
            if length > LONGEST:
                break
            pieces.append(piece)
        return self.frame.replace("{}", self.joined.join(pieces))

    def numbered(self) -> Iterator[str]:
        """The piece with one number after another."""
        for n in range(1, LONGEST):
            yield (
                self.piece.replace("<n>", str(n))
                .replace("<k>", str(1 + n % 47))
                .replace("<m>", f"{1 + n % 12:02}")
                .replace("<l>", chr(97 + n % 26) + chr(97 + n // 26 % 26))
            )


def nested(piece: str, inner: str, frame: str, depth: int = 19) -> str:
    """A piece around itself, as deep as brackets may be."""
    text = inner
    for n in range(1, depth + 1):
        text = piece.replace("{}", text).replace("<n>", str(n))
    return frame.replace("{}", text)


def conditions(one: str, two: str, text: str, day: str, group: str) -> list[str]:
    """Pieces of conditions over two columns of numbers, one of text and one of days."""
    return [
        f"{one} = <n>",
        f"{one} <> <n>",
        f"{one} BETWEEN <k> AND <n>",
        f"({one} = <k> AND {two} < <n>)",
        f"({one} > <n> OR {two} > <k>)",
        f"NOT ({one} = <k> AND {two} = <n>)",
        f"{one} + {two} > <n>",
        f"{one} * {two} % <n> = <k>",
        f"{one} % <n> = 0",
        f"ABS({one} - <n>) < <k>",
        f"{one} + <n> IN (<n>, <k>)",
        f"POWER({one}, 2) > <n>",
        f"ROUND({one} / <n>, 1) = <k>",
        f"SQRT({one}) < <n>",
        f"COALESCE({one}, <n>) = <k>",
        f"NULLIF({one}, <n>) IS NULL",
        f"GREATEST({one}, {two}, <n>) = <k>",
        f"CASE WHEN {one} > <n> THEN {two} ELSE {one} END = <k>",
        f"CASE WHEN {one} > <n> THEN 1 ELSE 0 END = 1",
        f"{text} = '<l>'",
        f"{text} LIKE '%<l>%'",
        f"{text} ILIKE '<l>%<n>'",
        f"UPPER({text}) LIKE '%<l>%'",
        f"REGEXP_MATCHES({text}, '<l>.*<n>')",
        f"REPLACE({text}, '<l>', 'x') = 'x<n>'",
        f"LENGTH({text}) = <n>",
        f"SUBSTRING({text}, <n>, 2) = '<l>'",
        f"{text} || '<n>' = 'a<k>'",
        f"CONCAT({text}, {one}) = 'a<n>'",
        f"{day} = DATE '2020-<m>-01'",
        f"DATE_TRUNC('month', {day}) = DATE '2020-<m>-01'",
        f"STRFTIME({day}, '%Y-%m') = '2020-<m>'",
        f"EXTRACT(year FROM {day}) = 1990 + <n>",
        f"DATE_DIFF('month', {day}, DATE '2021-01-01') > <n>",
        f"MONTH({day}) * <n> = <k>",
        f"MONTH({day}) + {one} = <n>",
        f"{day} >= DATE '2020-01-01' + INTERVAL <n> MONTH",
        "missing = <n>",
        f"FOO({one}) = <n>",
        f"{group} = 'x<n>'",
    ]


def outputs(one: str, two: str, text: str, day: str) -> list[str]:
    """Pieces of select lists."""
    return [
        f"COUNT(*) FILTER (WHERE {one} = <n>) AS c<n>",
        f"COUNT(*) FILTER (WHERE {text} LIKE '%<l>%') AS c<n>",
        f"COUNT(*) FILTER (WHERE DATE_TRUNC('month', {day}) = DATE '2020-<m>-01') AS c<n>",
        f"SUM({one}) AS s<n>",
        f"SUM({one} + <n>) AS s<n>",
        f"SUM({one} * {two}) FILTER (WHERE {one} > <n>) AS s<n>",
        f"SUM(CASE WHEN {one} < <n> THEN {two} END) AS s<n>",
        f"SUM(CASE WHEN {one} < <n> THEN 1 ELSE 0 END) AS s<n>",
        f"AVG({one}) FILTER (WHERE {two} = <n>) AS a<n>",
        f"AVG(CASE WHEN {text} = '<l>' THEN {two} END) AS a<n>",
        f"AVG(LENGTH({text}) + <n>) AS a<n>",
        f"MEDIAN({one}) FILTER (WHERE {two} > <k>) AS m<n>",
        f"MEDIAN({two}) AS m<n>",
        f"QUANTILE_CONT({two}, 0.<k>) AS m<n>",
        f"QUANTILE_CONT({one}, 0.<k>) FILTER (WHERE {two} > <k>) AS m<n>",
        f"STDDEV({two}) FILTER (WHERE {two} > <n>) AS v<n>",
        f"VARIANCE({one}) AS v<n>",
        f"CORR({two}, {two} + <n>) AS o<n>",
        f"CORR({one}, {two}) FILTER (WHERE {two} > <n>) AS o<n>",
        f"COUNT(DISTINCT {one}) AS d<n>",
        f"COUNT(DISTINCT {two}) FILTER (WHERE {one} > <n>) AS d<n>",
        f"MODE({two}) AS o<n>",
        f"MIN({one}) AS l<n>, MAX({two}) AS g<n>",
        f"MIN({one} + <n>) AS l<n>",
        f"100.0 * COUNT(*) FILTER (WHERE {two} = <n>) / COUNT(*) AS r<n>",
        f"100.0 * SUM({one}) / SUM(SUM({one})) OVER () AS w<n>",
        "SUM(COUNT(*)) OVER (ORDER BY <n>) AS w<n>",
        "RANK() OVER (ORDER BY COUNT(*) + <n>) AS w<n>",
        "LAG(COUNT(*), <k>) OVER (ORDER BY 1) AS w<n>",
        f"ROUND(AVG({one}), <k>) AS r<n>",
        f"FOO<n>({one}) AS f<n>",
        f"ARRAY_AGG({one} + <n>) AS f<n>",
        f"STRING_AGG({text}, '<n>') AS f<n>",
        f"{one} AS g<n>",
        "missing<n>",
        f"BOOL_OR({one} > <n>) AS b<n>",
    ]


def kinds(table: str, one: str, two: str, text: str, day: str, group: str) -> dict[str, str]:
    """Texts of all kinds about one table."""
    where, by = f"SELECT COUNT(*) FROM {table} WHERE {{}}", f"SELECT {group}, {{}} FROM {table} GROUP BY {group}"
    alone = f"SELECT {{}} FROM {table}"
    summed = f"SELECT SUM(CASE {{}} END) FROM {table}"
    grouped_by = f"SELECT CASE {{}} END AS g, COUNT(*) FROM {table} GROUP BY g"
    having = f"SELECT {group}, COUNT(*) AS n, AVG({one}) AS a FROM {table} GROUP BY {group} HAVING {{}}"
    texts: dict[str, str] = {}
    for piece in conditions(one, two, text, day, group):
        for joined in (" OR ", " AND "):
            texts[f"WHERE {piece}{joined}"] = Kind(piece=piece, frame=where, joined=joined).text
    for piece in outputs(one, two, text, day):
        texts[piece] = Kind(piece=piece, frame=alone).text
        texts[f"{piece} by {group}"] = Kind(piece=piece, frame=by).text
    branches = [
        f"WHEN {one} = <n> THEN <k>",
        f"WHEN {one} < <n> THEN {two}",
        f"WHEN {one} > <n> AND {two} = <k> THEN <n>",
        f"WHEN {one} = <n> OR {two} = <k> THEN {one}",
        f"WHEN {one} = {two} + <n> THEN {one} - {two}",
        f"WHEN {text} = '<l>' THEN <n>",
        f"WHEN {text} LIKE '%<l>%' AND {one} > <n> THEN <k>",
        f"WHEN {one} > <n> AND {two} > <k> AND {group} LIKE '%<l>%' THEN <k>",
        f"WHEN MONTH({day}) = <k> THEN <n>",
        f"WHEN {day} < DATE '2020-<m>-01' THEN {one} * <n>",
        "WHEN missing = <n> THEN <k>",
    ]
    for piece in branches:
        texts[f"SUM(CASE {piece}"] = Kind(piece=piece, frame=summed, joined=" ").text
        texts[f"AVG(CASE {piece} by {group}"] = Kind(
            piece=piece, frame=f"SELECT {group}, AVG(CASE {{}} ELSE 0 END) FROM {table} GROUP BY {group}", joined=" "
        ).text
        texts[f"GROUP BY CASE {piece}"] = Kind(piece=piece, frame=grouped_by, joined=" ").text
        texts[f"MEDIAN(CASE {piece}"] = Kind(
            piece=piece, frame=f"SELECT MEDIAN(CASE {{}} END) FROM {table}", joined=" "
        ).text
        texts[f"WHERE CASE {piece} = 1"] = Kind(
            piece=piece, frame=where.replace("{}", "CASE {} END = 1"), joined=" "
        ).text
        texts[f"STDDEV(CASE {piece}"] = Kind(
            piece=piece, frame=f"SELECT STDDEV(CASE {{}} END) FROM {table}", joined=" "
        ).text
    for piece in (
        "n > <n>",
        "n + a > <n>",
        "(n > <n> AND a < <k>)",
        f"SUM({one}) > <n>",
        f"COUNT(*) FILTER (WHERE {one} = <n>) > <k>",
        "ROUND(a, 1) = <n>",
    ):
        for joined in (" OR ", " AND "):
            texts[f"HAVING {piece}{joined}"] = Kind(piece=piece, frame=having, joined=joined).text
    texts["ORDER BY CASE"] = Kind(
        piece="WHEN n > <n> THEN <k>",
        frame=f"SELECT {group}, COUNT(*) AS n FROM {table} GROUP BY {group} ORDER BY CASE {{}} END",
        joined=" ",
    ).text
    texts["UNION ALL of counts"] = Kind(
        piece=f"SELECT <n> AS x, COUNT(*) AS n FROM {table} WHERE {one} = <n>", frame="{}", joined=" UNION ALL "
    ).text
    texts["UNION ALL of groups"] = Kind(
        piece=f"SELECT {group}, SUM({one} + <n>) AS s FROM {table} GROUP BY {group}", frame="{}", joined=" UNION ALL "
    ).text
    texts["UNION of averages"] = Kind(
        piece=f"SELECT AVG({one}) FROM {table} WHERE {two} > <n>", frame="{}", joined=" UNION ALL "
    ).text
    for last in ("SELECT n60 FROM t60", "SELECT COUNT(*) FROM t60", "SELECT SUM(n60 + n59) FROM t60 JOIN t59 ON TRUE"):
        chain = [f"t0 AS (SELECT COUNT(*) AS n0 FROM {table})"]
        chain += [f"t{n} AS (SELECT n{n - 1} + {n} AS n{n} FROM t{n - 1})" for n in range(1, 61)]
        texts[f"WITH of counts, {last}"] = f"WITH {', '.join(chain)} {last}"
    rows = [f"t0 AS (SELECT * FROM {table})"]
    rows += [f"t{n} AS (SELECT * FROM t{n - 1} WHERE {one} <> {n} OR {two} <> {n})" for n in range(1, 61)]
    texts["WITH of rows"] = f"WITH {', '.join(rows)} SELECT {group}, COUNT(*) FROM t60 GROUP BY {group}"
    texts["scalar sub-selects"] = Kind(
        piece=f"(SELECT COUNT(*) FROM {table} WHERE {one} = <n>) AS n<n>", frame="SELECT {}"
    ).text
    texts["EXISTS"] = Kind(piece=f"EXISTS (SELECT 1 FROM {table} WHERE {one} = <n>)", frame=where, joined=" OR ").text
    texts["IN of selects"] = Kind(
        piece=f"{one} IN (SELECT {one} FROM {table} WHERE {two} = <n>)", frame=where, joined=" OR "
    ).text
    texts["joins of groups"] = Kind(
        piece=f"JOIN (SELECT {group} AS g<n>, COUNT(*) AS n<n> FROM {table} WHERE {one} = <n> GROUP BY g<n>) AS t<n> "
        f"ON t<n>.g<n> = t.{group}",
        frame=f"SELECT t.{group}, n1 FROM (SELECT {group}, COUNT(*) AS n FROM {table} GROUP BY {group}) AS t {{}}",
        joined=" ",
    ).text
    texts["PIVOT"] = Kind(piece="<n>", frame=f"PIVOT {table} ON {one} IN ({{}}) USING COUNT(*) GROUP BY {group}").text
    texts["PIVOT of averages"] = Kind(
        piece=f"AVG({two} + <n>) AS a<n>",
        frame=f"PIVOT {table} ON {group} USING {{}} GROUP BY {text}",
    ).text
    texts["IN list of 500"] = f"SELECT COUNT(*) FROM {table} WHERE {one} IN ({', '.join(map(str, range(500)))})"
    texts["IN list of texts"] = Kind(
        piece="'<l><n>'", frame=f"SELECT COUNT(*) FROM {table} WHERE {text} IN ({{}})"
    ).text
    texts["IN list of a term"] = Kind(
        piece="<n>", frame=f"SELECT COUNT(*) FROM {table} WHERE {one} * 3 + {two} IN ({{}})"
    ).text
    texts["sum of a row"] = Kind(piece=f"{one} * <n>", frame=f"SELECT SUM({{}}) FROM {table}", joined=" + ").text
    texts["sum of 70"] = f"SELECT SUM({' + '.join(f'{one} * {n} * {two}' for n in range(26))}) FROM {table}"
    texts["GROUP BY 64"] = Kind(piece=f"({one} + <n>)", frame=f"SELECT COUNT(*) FROM {table} GROUP BY {{}}").text
    texts["GROUP BY terms"] = f"SELECT COUNT(*) FROM {table} GROUP BY {', '.join(f'{one} % {n}' for n in range(2, 60))}"
    texts["GROUPING SETS"] = Kind(
        piece=f"({group}, {one} % <n>)", frame=f"SELECT COUNT(*) FROM {table} GROUP BY GROUPING SETS ({{}})"
    ).text
    texts["CUBE"] = (
        f"SELECT COUNT(*) FROM {table} GROUP BY CUBE ({', '.join(f'({group}, {two} % {n})' for n in range(2, 12))})"
    )
    texts["VALUES"] = Kind(
        piece="(<n>, <k>)",
        frame=f"SELECT v.k, COUNT(*) FROM {table} JOIN (VALUES {{}}) AS v(a, k) ON {two} = v.a GROUP BY v.k",
    ).text
    texts["comments"] = f"SELECT COUNT(*) FROM {table} /* {'x' * 8000} */"
    texts["brackets"] = f"SELECT COUNT(*) FROM {table} WHERE {'(' * 3900}{one} = 1{')' * 3900}"
    texts["open brackets"] = f"SELECT COUNT(*) FROM {table} WHERE {'(' * 8000}"
    texts["NOTs"] = f"SELECT COUNT(*) FROM {table} WHERE {'NOT ' * 2000}{one} = 1"
    texts["a long name"] = f"SELECT COUNT(*) FROM {table} WHERE {'x' * 8000} = 1"
    texts["a long text"] = f"SELECT COUNT(*) FROM {table} WHERE {text} = '{'x' * 8000}'"
    texts["a long pattern"] = f"SELECT COUNT(*) FROM {table} WHERE {text} LIKE '{'%a' * 4000}'"
    texts["a long regular expression"] = (
        f"SELECT COUNT(*) FROM {table} WHERE REGEXP_MATCHES({text}, '{'(a|b)*' * 1300}')"
    )
    texts["a long number"] = f"SELECT COUNT(*) FROM {table} WHERE {one} < {'9' * 8000}"
    texts["select list of stars"] = f"SELECT {', '.join('*' for _ in range(2700))} FROM {table}"
    texts["columns alone"] = Kind(piece=f"{one}", frame=f"SELECT {{}} FROM {table}").text
    texts["CASTs"] = f"SELECT SUM({'CAST(' * 19}{one}{' AS INTEGER)' * 19}) FROM {table}"
    texts["nested CASE"] = nested(
        f"CASE WHEN {one} > <n> THEN {two} + <n> ELSE {{}} END", one, f"SELECT SUM({{}}) FROM {table}", 18
    )
    texts["nested CASE in WHERE"] = nested(
        f"CASE WHEN {one} > <n> AND {two} < <n> THEN {two} + <n> ELSE {{}} END",
        one,
        f"SELECT COUNT(*) FROM {table} WHERE {{}} > 3",
        18,
    )
    texts["nested functions"] = nested("ABS({} - <n>)", f"{one} * {two}", f"SELECT SUM({{}}) FROM {table}", 18)
    texts["nested ROUND"] = nested("ROUND({} / <n>, 1)", one, f"SELECT SUM({{}}) FROM {table}", 18)
    texts["nested COALESCE"] = nested(f"COALESCE(NULLIF({{}}, <n>), {two})", one, f"SELECT AVG({{}}) FROM {table}", 9)
    texts["nested OR"] = nested(f"({{}} OR ({one} = <n> AND {two} = <n>))", f"{one} = 0", where, 18)
    texts["nested NOT"] = nested(f"NOT ({{}} AND {one} <> <n>)", f"{two} = 0", where, 18)
    texts["many names of one sum"] = Kind(
        piece="SUM(x<n>) AS s<n>",
        frame=f"SELECT {{}} FROM (SELECT {', '.join(f'{one} + {n} AS x{n}' for n in range(1, 120))} FROM {table}) AS t",
    ).text
    texts["windows over windows"] = (
        f"SELECT {group}, "
        + ", ".join(
            f"AVG(COUNT(*)) OVER (ORDER BY {group} ROWS BETWEEN {n} PRECEDING AND CURRENT ROW) AS w{n}"
            for n in range(70)
        )
        + f" FROM {table} GROUP BY {group}"
    )
    texts["MIN and an unknown function"] = f"SELECT MIN({one}), FOO({one}) FROM {table}"
    texts["two unknown functions"] = f"SELECT FOO({one}), BAR({two}) FROM {table} WHERE {text} LIKE 'x' GROUP BY {one}"
    texts["medians and an unknown function"] = (
        f"SELECT {', '.join(f'MEDIAN({one}) AS m{n}' for n in range(100))}, FOO({one}) FROM {table}"
    )
    texts["counts, and the last is refused"] = Kind(
        piece=f"COUNT(*) FILTER (WHERE {one} = <n>) AS c<n>", frame=f"SELECT {{}}, FOO({one}) FROM {table}"
    ).text
    texts["OR, and the last is refused"] = Kind(
        piece=f"({one} = <n> AND {two} = <k>)",
        frame=f"SELECT COUNT(*) FROM {table} WHERE {{}} OR FOO({one}) = 1",
        joined=" OR ",
    ).text
    texts["two columns tied, and a third"] = Kind(
        piece=f"({one} = <n> OR {two} = <k> OR {text} = '<l>')", frame=where, joined=" AND "
    ).text
    texts["all columns tied"] = Kind(
        piece=f"({one} = <n> AND {two} = <k> AND {text} = '<l>' AND {day} > DATE '2020-<m>-01')",
        frame=where,
        joined=" OR ",
    ).text
    texts["groups with all columns tied"] = Kind(
        piece=f"({one} = <n> AND {two} = <k> AND {text} = '<l>' AND {day} > DATE '2020-<m>-01')",
        frame=f"SELECT {group}, COUNT(*) FROM {table} WHERE {{}} GROUP BY {group}",
        joined=" OR ",
    ).text
    texts["at least two of"] = Kind(
        piece=f"CASE WHEN {one} > <n> THEN 1 ELSE 0 END", frame=where.replace("{}", "{} >= 2"), joined=" + "
    ).text
    return {f"{table}: {name}": text for name, text in texts.items()}


def long_columns() -> str:
    """The config of the table with long columns."""
    cities = ", ".join(f'"city {n} of {chr(97 + n % 26)}{chr(97 + n // 26)}"' for n in range(400))
    return WIDE.format(cities=cities, codes=", ".join(map(str, range(100, 600))))


def seconds(text: str, config: Config) -> tuple[float, bool]:
    """CPU to compile or refuse a text, and whether it was accepted."""
    start = time.process_time()
    accepted = verdict(text, config).accepted
    return time.process_time() - start, accepted


def measured(texts: Mapping[str, str], config: Config, plain: str) -> Figures:
    """All of them together, and the slowest ones."""
    seconds(plain, config)  # what is imported when something is used is not counted
    usual = statistics.median(seconds(plain, config)[0] for _ in range(15))
    taken = {name: seconds(text, config) for name, text in texts.items()}
    spent = {name: cpu for name, (cpu, _) in taken.items()}
    figures: Figures = {
        f"{config.table}": {
            "texts": len(texts),
            "accepted": sum(accepted for _, accepted in taken.values()),
            "over": sum(cpu > LONG for cpu in spent.values()),
            "median_ratio": statistics.median(spent.values()) / usual,
            "cpu_s": sum(spent.values()),
        }
    }
    slowest = sorted(spent, key=lambda name: -spent[name])[:SHOWN]
    return figures | {name: {"cpu_s": spent[name], "ratio": spent[name] / usual} for name in slowest}


def main() -> None:
    args = options(__doc__ or "", kind={"default": "", "metavar": "WORD", "help": "those with this in their name"})
    figures: Figures = {}
    with tempfile.TemporaryDirectory() as folder:
        demo = load(generate(Path(folder) / "people.csv", 10_000))
        (Path(folder) / "wide.toml").write_text(long_columns())
        wide = load(Path(folder) / "wide.toml")
        settings = [(demo, ("people", "age", "hours", "occupation", "joined", "region"))]
        settings += [] if args.quick else [(wide, ("wide", "score", "part", "city", "day", "code"))]
        for config, words in settings:
            texts = {name: text for name, text in kinds(*words).items() if args.kind in name}
            chosen = dict(list(texts.items())[:: 3 if args.quick else 1])
            figures |= measured(chosen, config, f"SELECT {words[-1]}, COUNT(*) FROM {words[0]} GROUP BY {words[-1]}")
    report("texts", args, figures)


if __name__ == "__main__":
    main()

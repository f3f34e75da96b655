"""CSV as people have it: other separators, decimal commas, currencies, dates as they are written at home.

A data set is read without guessing, ever: with commas, numbers with a point, days as 2024-01-31. What is written in
another way is guessed at here, once, for the data owner who asks for it, and copied into a file that needs no guess.

Guarantees: no row passes through Python, DuckDB copies them; errors speak of files and columns, never of rows.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import os
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import BinaryIO

import duckdb

from bursar.core.source.duckdb import SETTINGS
from bursar.core.source.raw import Connection, attempt, literal, quoted
from bursar.errors import SourceError

MOSTLY = 0.8
"""The share of a column's fields that must be written in some way for it to be a column of them."""

SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
BYTE_ORDER_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",  # first: it begins with that of UTF-16
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
LARGE = 2**30
"""A file of this many bytes or more is read anew for each of its columns, and not kept in memory."""

ISO = "%Y-%m-%d"
EXAMPLE_DAY = date(2023, 12, 31)
SIGN = r"(?:[€$£¥]|EUR|USD|GBP|CHF|JPY)"
POINT, COMMA = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?", r"(?:\d{1,3}(?:\.\d{3})+|\d+)(?:,\d+)?"
FIELD = "<field>"  # a place for the column in SQL
MISSING = "('', 'na', 'n/a', 'n.a.', '#n/a', '<na>', 'nan', 'null', 'none', '-', '--', '?', '.')"


@dataclass(frozen=True, kw_only=True)
class Plain:
    """The copy, and what is different about the original, in words."""

    path: Path
    told: str


@dataclass(frozen=True, kw_only=True)
class _Field:
    """One column of the copy: SQL for its text, and what is different about it."""

    name: str
    sql: str
    told: str = ""
    kept: str = ""  # why it is left as it is, though much of it is numbers


def plain_copy(file: Path, *, allowed: bool, told: Callable[[str], None] = lambda step: None) -> Plain | None:
    """A copy of a CSV file that can be read without guessing, beside it; None where the file itself can.

    `told` hears what is looked at next.

    Edge cases: refused where the owner has not `allowed` a second file with the rows, and where the file is not UTF-8.
    None as well where nothing else can be told about the file: whoever reads it says why.
    """
    if not file.name.lower().endswith((".csv", ".csv.gz")) or not file.is_file():
        return None
    connection = attempt(lambda: duckdb.connect(":memory:", config=SETTINGS), "DuckDB cannot be started")
    try:
        return _copied(connection, file, allowed=allowed, say=told)
    finally:
        connection.close()


def _copied(connection: Connection, file: Path, *, allowed: bool, say: Callable[[str], None]) -> Plain | None:
    where = literal(str(file.absolute()).replace("[", "[[]"))
    try:
        sniffing = connection.execute(f"FROM sniff_csv({where}, header = true)")
        sniffed = dict(zip((line[0] for line in sniffing.description), sniffing.fetchone(), strict=True))
    except duckdb.Error:
        _refuse_other_letters(file)
        return None
    separator, quote = sniffed["Delimiter"], sniffed["Quote"]
    single = len(sniffed["Columns"]) == 1
    if sniffed["SkipRows"] or single:  # one broken line makes DuckDB skip all before it, or find no separator
        _refuse_uneven_lines(connection, file, where)
    if single and separator != ",":
        return None
    odd_quote = quote not in ('"', "(empty)", "", "\0")
    if separator not in (",", *SEPARATORS):
        return None
    reading = f"delim = {literal(separator)}, quote = {literal(quote if odd_quote else chr(34))}, header = true"
    relation = f"read_csv({where}, {reading}, auto_detect = true, all_varchar = true, null_padding = false)"
    unreadable = f"{file} cannot be read as CSV with {SEPARATORS.get(separator, 'commas')} between its fields"
    columns = [(column["name"], column["type"]) for column in sniffed["Columns"]]
    odd = [quoted(name) for name, kind in columns if kind in ("VARCHAR", "DATE")]
    say(f"looking at how {file.name} is written")
    relation_kind = "TABLE" if file.stat().st_size < LARGE else "VIEW"
    load = f"CREATE TEMP {relation_kind} fields AS SELECT {', '.join(odd) or '1'} FROM {relation}"
    try:
        attempt(lambda: connection.execute(load), unreadable)
    except SourceError:
        _refuse_uneven_lines(connection, file, where)
        if separator == ",":
            return None
        raise
    fields = [
        attempt(partial(_field, connection, name, kind, sniffed, separator), f"{unreadable}: column {name}")
        for name, kind in columns
    ]
    told = [f"it has {SEPARATORS[separator]} between its fields"] if separator != "," else []
    told += ["its fields are quoted in another way"] if odd_quote else []
    told += [field.told for field in fields if field.told]
    if not told:
        return None
    told += [field.kept for field in fields if field.kept]
    copy = file.with_name(f"{file.name.split('.')[0]}.plain.csv")
    if not allowed:
        raise SourceError(
            f"{file} is not written with commas, plain numbers and days as 2024-01-31; nothing here is guessed: "
            f"{'; '.join(told)}\n"
            f"try: the same with --copy, which writes these rows to {copy.name} too, for you to keep as safe"
        )
    if os.path.lexists(copy):
        raise SourceError(
            f"{copy} exists, and is left as it is; move it away, or draft from it: bursar init {copy.name}"
        )
    selected = ", ".join(f"{field.sql} AS {quoted(field.name)}" for field in fields)
    writing = f"COPY (SELECT {selected} FROM {relation}) TO {literal(str(copy.absolute()))} (HEADER, DELIMITER ',')"
    try:
        copy.touch(mode=0o600)
        attempt(lambda: connection.execute(writing), unreadable)
        shutil.copymode(file, copy)
    except BaseException:
        with suppress(OSError):
            copy.unlink()
        raise
    return Plain(path=copy, told="; ".join(told))


def _field(connection: Connection, name: str, kind: str, sniffed: dict[str, str], separator: str) -> _Field:
    column = quoted(name)
    each = f"(SELECT {column} AS field, count(*) AS n FROM fields WHERE {column} IS NOT NULL GROUP BY ALL)"
    style = sniffed["DateFormat"]
    if kind == "DATE" and style and style != ISO:
        if _ambiguous(connection, each, style):
            return _Field(name=name, sql=column, told=f"{name} may have days or months first, and is left as it is")
        day = f"try_strptime({column}, {literal(style)})"
        return _Field(
            name=name, sql=f"strftime({day}, '{ISO}')", told=f"{name} has days as {EXAMPLE_DAY.strftime(style)}"
        )
    if kind != "VARCHAR":
        return _Field(name=name, sql=column)
    filled_field = f"lower(trim(field)) NOT IN {MISSING}"
    signed = rf"\s*[-+]?\s*{SIGN}?\s*[-+]?\s*(?:{{number}})\s*{SIGN}?\s*"
    patterns = {"point": signed.format(number=POINT), "comma": signed.format(number=COMMA)}
    fits = {way: f"regexp_full_match({FIELD}, {literal(pattern)})" for way, pattern in patterns.items()}
    decimals = r"regexp_matches(field, '{0}\d+\D*$') AND NOT regexp_matches(field, '{0}\d{{3}}\D*$')"
    dressed = f"{fits['point']} AND regexp_matches(field, '[^-+.0-9\\s]')"
    conditions = [
        *(filled_field, *(fit.replace(FIELD, "field") for fit in fits.values())),
        *(decimals.format(mark) for mark in (r"\.", ",")),
        *(dressed.replace(FIELD, "field"), r"regexp_matches(field, ',\d{3}\D*$')"),
    ]
    rows = ", ".join(f"coalesce(sum(n) FILTER ({condition}), 0)" for condition in conditions)
    counted = connection.execute(f"SELECT {rows} FROM {each}").fetchone()
    filled, points, commas, pointed, parted, signs, thousands = counted
    european = separator != "," and parted > 0 and pointed == 0
    way, number = ("comma", commas) if european else ("point", points)
    if european and filled / 2 <= number < MOSTLY * filled:
        words = f"{1 - number / filled:.0%} of its fields are no numbers"
        return _Field(name=name, sql=column, kept=f"{name} has decimal commas, and is left as it is, since {words}")
    if not filled or number < MOSTLY * filled or (way == "point" and (parted > pointed or not signs)):
        return _Field(name=name, sql=column)
    if separator != "," and thousands and not pointed and not parted:
        return _Field(name=name, sql=column, told=f"{name} may have decimal commas or thousands, and is left as it is")
    bare = rf"regexp_replace({column}, '[^-0-9.,]', '', 'g')"
    group, mark = (".", ",") if way == "comma" else (",", ".")
    text = f"replace(replace({bare}, '{group}', ''), '{mark}', '.')"
    told = f"{name} has decimal commas" if way == "comma" else f"{name} has signs or commas in its numbers"
    return _Field(name=name, sql=f"CASE WHEN {fits[way].replace(FIELD, column)} THEN {text} END", told=told)


def _refuse_uneven_lines(connection: Connection, file: Path, where: str) -> None:
    """SourceError with the first line that has more or fewer fields than the first one, if there is one; with commas
    between its fields the file is left to whoever reads it, who names the line as well.

    Guarantees: of DuckDB's message, which quotes rows, nothing but two numbers is taken: the line and its fields.
    """
    with suppress(OSError, UnicodeDecodeError, csv.Error, StopIteration):
        with _opened(file) as lines:
            first = lines.readline().decode("utf-8-sig")
        separator = max((",", *SEPARATORS), key=first.count)
        if separator == ",":
            return
        names = next(csv.reader([first], delimiter=separator))
        columns = ", ".join(f"c{place}: 'VARCHAR'" for place in range(len(names)))
        dialect = f"""delim = {literal(separator)}, quote = '"', escape = '"', header = true, auto_detect = false"""
        reading = f"CREATE TEMP TABLE even AS FROM read_csv({where}, columns = {{{columns}}}, {dialect})"
        line = fields = None
        try:
            connection.execute(reading)
        except duckdb.Error as fault:
            line = re.search(r"CSV Error on Line: (\d+)", str(fault))
            fields = re.search(r"Expected Number of Columns: \d+ Found: (\d+)", str(fault))
        if line is not None:
            count = f"{fields[1]} fields, and its first line {len(names)}" if fields else "a quote that is left open"
            raise SourceError(
                f"{file} cannot be read as CSV: line {line[1]} has {count}\n"
                "try: mend that line; a text with a separator or a line break in it stands in quotes, "
                f'"like{separator} this"'
            )


def _opened(file: Path) -> gzip.GzipFile | BinaryIO:
    return gzip.open(file, "rb") if file.suffix.lower() == ".gz" else file.open("rb")


def _refuse_other_letters(file: Path) -> None:
    """SourceError with the first line that is not UTF-8, if there is one: an old code page, as Excel writes it."""
    decoder, lines = codecs.getincrementaldecoder("utf-8")(), 1
    with _opened(file) as rows:
        for line in rows:
            try:
                decoder.decode(line)
            except UnicodeDecodeError:
                marked = (code for mark, code in BYTE_ORDER_MARKS.items() if lines == 1 and line.startswith(mark))
                code = next(marked, None)
                origin = "if it comes from Windows" if code is None else f"as it begins like {code}"
                better = f"iconv -f {code or 'WINDOWS-1252'} -t UTF-8 {file.name} > {file.name.split('.')[0]}.utf8.csv"
                raise SourceError(
                    f"{file} is not in UTF-8: line {lines} is the first with letters in another code\n"
                    f"try: export it as CSV UTF-8; or, {origin}: {better}"
                ) from None
            lines += 1


def _ambiguous(connection: Connection, each: str, style: str) -> bool:
    """Whether all days could as well be read with day and month exchanged."""
    swapped = style.translate(str.maketrans("dm", "md"))
    if style.startswith("%Y") or swapped == style:
        return False
    told = f"SELECT count(*) FILTER (try_strptime(field, {literal(swapped)}) IS NULL) FROM {each}"
    return bool(connection.execute(told).fetchone()[0] == 0)

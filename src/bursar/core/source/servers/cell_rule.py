"""The row -> cell rule for tables in a server, and the statement that counts bounded rows by cells. Coding 2.

It is narrower than the rule for files (`core/source/coding.py`), so that four engines can mean the same by it:

| column   | is read as                                        | unreadable                                          |
|----------|---------------------------------------------------|-----------------------------------------------------|
| text     | its text, compared character by character         | nothing; only text columns are allowed              |
| integers | a whole number of up to 37 digits                 | a fraction, an exponent, a float beyond 2^53        |
| booleans | true, t or 1; false, f or 0; in any letter case   | anything else                                       |
| a range  | a 64-bit float, rounded *down*                    | no number, NaN, a text of more than 50 digits       |
| bins     | a 64-bit float                                    | the same                                            |
| dates    | a day; times are cut off, in UTC if zoned         | a text that is not YYYY-MM-DD, or such with a time  |

Blanks around a number in a text are left out, and nothing else is. All else is as in `core/source/coding.py`: NULL,
values outside, clipping, and unreadable values where values are clipped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from bursar.core.domain import Attribute, Bins, Categories, Dates, Domain, IntegerRange, Period, Unit
from bursar.core.source.coding import EXACT_FLOATS, halved, strays
from bursar.core.source.servers.dialect import Dialect, Stored
from bursar.errors import SourceError

CODING = "coding 2"
HUGE = 1e300
"""What infinities, and exact numbers beyond it, are read as; edges of bins must stay far below."""

LARGEST_EDGE, SMALLEST_EDGE = 1e290, 1e-290
LARGEST_WHOLE = 10**37
LARGEST_KEY = 2**62
LAST_YEAR = 9990
EVERY_ROW = "1 = 1"
HOW_MANY, PERSON = "n", "person_"
"""The last column of a line: how many rows, or whose row."""
MOST_KEYED = 10_000
"""Most listed values or bins of one column: they are part of the statement."""

NUMBER = r"[+-]?([0-9]{1,50}([.][0-9]{0,50})?|[.][0-9]{1,50})([eE][+-]?0{0,9}([0-9]{1,2}|1[0-9][0-9]|2[0-4][0-9]))?"
WHOLE = r"[+-]?[0-9]{1,37}([.]0{0,20})?"
ABOVE, BELOW = (rf"{sign}[Ii][Nn][Ff]([Ii][Nn][Ii][Tt][Yy])?" for sign in ("[+]?", "-"))
TRUE, FALSE = r"[Tt]([Rr][Uu][Ee])?", r"[Ff]([Aa][Ll][Ss][Ee])?"
YEAR = r"([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
LEAP = r"([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)"
LONG, SHORT = r"(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])", r"(0[469]|11)-(0[1-9]|[12][0-9]|30)"
TIME = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,9})?)?"
DAY = rf"({YEAR}-({LONG}|{SHORT}|02-(0[1-9]|1[0-9]|2[0-8]))|{LEAP}-02-29)([ T]{TIME})?"

Columns = dict[str, tuple[str, Stored]]
"""SQL and storage for each stored column, by its name."""

TEXTS = (Stored.TEXT, Stored.PADDED)
TIMES = (Stored.DATE, Stored.LOCAL_TIME, Stored.ZONED_TIME)


@dataclass(frozen=True)
class CodedColumn:
    """SQL for one column: what is read of the raw value, and the cell, given the reading as r<place>."""

    reading: str
    cell: str
    join: str = ""


def coded(dialect: Dialect, attribute: Attribute, place: int, raw: str, stored: Stored) -> CodedColumn:
    """The rule for one column; SourceError, from public facts, where the engines could not agree about it."""
    read, name, join = f"r{place}", attribute.name, ""
    match attribute:
        case Categories():
            reading, keys = _listed(dialect, attribute, raw, stored)
            join = f" LEFT JOIN {dialect.keys(keys, f'keys{place}')} ON {read} = keys{place}.key_"
            below, above, inside = f"keys{place}.cell IS NULL", "", f"keys{place}.cell"
        case IntegerRange():
            if max(abs(attribute.lower), abs(attribute.upper)) >= EXACT_FLOATS:
                raise SourceError(f"column {name}: lower and upper must lie within 2^53; list the values")
            reading = number(dialect, raw, stored)
            below = f"{read} < {dialect.real(attribute.lower)}"
            above = f"{read} >= {dialect.real(attribute.upper + 1)}"
            inside = f"{dialect.floor(read)} - ({attribute.lower})"
        case Bins():
            if any(edge and not SMALLEST_EDGE <= abs(edge) <= LARGEST_EDGE for edge in attribute.edges):
                reason = f"edges other than 0 must lie between {SMALLEST_EDGE} and {LARGEST_EDGE}"
                raise SourceError(f"column {name}: {reason}, without their sign")
            _limit(name, attribute.declared)
            reading = number(dialect, raw, stored)
            below = f"{read} < {dialect.real(attribute.edges[0])}"
            above = f"{read} > {dialect.real(attribute.edges[-1])}"
            inside = halved(read, [dialect.real(edge) for edge in attribute.edges], 0, attribute.declared)
        case Dates():
            if attribute.last.year > LAST_YEAR:
                raise SourceError(f"column {name}: a server takes days up to the year {LAST_YEAR}")
            reading = _day(dialect, raw, stored)
            first, last = attribute.start(0), attribute.start(attribute.declared)
            below, above = f"{read} < {dialect.day(first)}", f"{read} >= {dialect.day(last)}"
            inside = _periods(dialect, attribute, read)
        case _:
            raise SourceError(f"column {name} is open; open columns are read from files and data frames, not here")
    unreadable, low, high = strays(attribute)
    cell = f"CASE WHEN n{place} = 1 THEN {attribute.null_cell} WHEN {read} IS NULL THEN {unreadable}"
    cell += f" WHEN {below} THEN {low}" + (f" WHEN {above} THEN {high}" if above else "") + f" ELSE {inside} END"
    return CodedColumn(reading=reading, cell=dialect.as_integer(cell), join=join)


def number(dialect: Dialect, raw: str, stored: Stored) -> str:
    """A float that can be compared; NULL where the value is no number."""
    if stored in TEXTS:
        text = dialect.trimmed(raw)
        return (
            f"CASE WHEN {dialect.matches(text, NUMBER)} THEN {dialect.as_real(text)} "
            f"WHEN {dialect.matches(text, ABOVE)} THEN {dialect.real(HUGE)} "
            f"WHEN {dialect.matches(text, BELOW)} THEN {dialect.real(-HUGE)} END"
        )
    if stored is Stored.INTEGER:
        return dialect.as_real(raw)
    if stored is Stored.DECIMAL:
        return dialect.decimal_as_real(raw)
    if stored is Stored.FLOAT:
        return dialect.finite_order(dialect.as_real(raw))
    if stored is Stored.BOOLEAN:
        return f"CASE WHEN {raw} THEN {dialect.real(1)} ELSE {dialect.real(0)} END"
    return f"CAST(NULL AS {dialect.real_type})"


def _listed(dialect: Dialect, attribute: Categories, raw: str, stored: Stored) -> tuple[str, list[str]]:
    """The reading of a column of listed values, and the keys that it is compared with."""
    _limit(attribute.name, attribute.declared)
    kind = type(attribute.values[0])
    if kind is str:
        texts = [str(value) for value in attribute.values]
        if stored not in TEXTS:
            raise SourceError(f"column {attribute.name} is no text in the database: declare numbers, days or booleans")
        if stored is Stored.PADDED and any(text.endswith(" ") for text in texts):
            raise SourceError(f"column {attribute.name} is CHAR(n), which has no trailing blanks: declare none")
        if any("\x00" in text for text in texts):
            raise SourceError(f"column {attribute.name}: no database keeps a text with the character 0")
        return dialect.text(raw), [dialect.text(dialect.literal(text)) for text in texts]
    if any(abs(int(value)) >= LARGEST_WHOLE for value in attribute.values):
        raise SourceError(f"column {attribute.name}: listed numbers have at most 37 digits")
    keys = [dialect.whole(f"({int(value)})") for value in attribute.values]
    return (_boolean if kind is bool else _whole)(dialect, raw, stored), keys


def _whole(dialect: Dialect, raw: str, stored: Stored) -> str:
    if stored in TEXTS:
        text = dialect.trimmed(raw)
        return f"CASE WHEN {dialect.matches(text, WHOLE)} THEN {dialect.whole(text)} END"
    if stored is Stored.INTEGER:
        return dialect.whole(raw)
    if stored is Stored.DECIMAL:
        return dialect.whole_of_decimal(raw)
    if stored is Stored.FLOAT:
        real = dialect.as_real(raw)
        inside = f"{real} > {dialect.real(-EXACT_FLOATS)} AND {real} < {dialect.real(EXACT_FLOATS)}"
        integer = dialect.whole(dialect.floor(real))
        return f"CASE WHEN {inside} THEN CASE WHEN floor({real}) = {real} THEN {integer} END END"
    if stored is Stored.BOOLEAN:
        return f"CASE WHEN {raw} THEN {dialect.whole('1')} ELSE {dialect.whole('0')} END"
    return f"CAST(NULL AS {dialect.whole_type})"


def _boolean(dialect: Dialect, raw: str, stored: Stored) -> str:
    one, zero = dialect.whole("1"), dialect.whole("0")
    real = number(dialect, raw, stored)
    words = ""
    if stored in TEXTS:
        text = dialect.trimmed(raw)
        words = f"WHEN {dialect.matches(text, TRUE)} THEN {one} WHEN {dialect.matches(text, FALSE)} THEN {zero} "
    return f"CASE {words}WHEN {real} = {dialect.real(1)} THEN {one} WHEN {real} = {dialect.real(0)} THEN {zero} END"


def _day(dialect: Dialect, raw: str, stored: Stored) -> str:
    if stored in TEXTS:
        text = dialect.text(raw)
        return f"CASE WHEN {dialect.matches(text, DAY)} THEN {dialect.day_of_text(text)} END"
    return dialect.day_of(raw, stored) if stored in TIMES else "CAST(NULL AS DATE)"


def _periods(dialect: Dialect, attribute: Dates, day: str) -> str:
    if attribute.by is Period.MONTH:
        year, month = dialect.part("YEAR", day), dialect.part("MONTH", day)
        return f"{year} * 12 + {month} - {1 + attribute.ordinal(attribute.first)}"
    days = dialect.days_since(day, attribute.start(0))
    return dialect.quotient(days, 7) if attribute.by is Period.WEEK else days


def _limit(name: str, declared: int) -> None:
    if declared > MOST_KEYED:
        raise SourceError(f"column {name} has {declared} listed values or bins; a server takes {MOST_KEYED}")


@dataclass(frozen=True)
class Keys:
    """Cells of all columns as few mixed-radix numbers below 2^62; the first begins with the partition's."""

    groups: tuple[tuple[str, ...], ...]
    sizes: dict[str, int]

    @staticmethod
    def of(domain: Domain) -> Keys:
        names = sorted(domain.names, key=lambda name: name != domain.partition)
        groups: list[list[str]] = [[]]
        for name in names:
            if groups[-1] and domain.cells([*groups[-1], name]) > LARGEST_KEY:
                groups.append([])
            groups[-1].append(name)
        return Keys(tuple(map(tuple, groups)), {name: domain[name].size for name in names})

    def place(self, name: str) -> tuple[int, int]:
        """The group of a column, and what its cell is multiplied by there."""
        for number, group in enumerate(self.groups):
            if name in group:
                behind = group[group.index(name) + 1 :]
                return number, math.prod(self.sizes[other] for other in behind)
        raise KeyError(name)


def rows_of_first(dialect: Dialect, columns: Columns, domain: Domain, first: int | None) -> str:
    """A condition on the raw value that all rows of so many partitions meet, from the first one on.

    An engine that keeps rows by that value passes over the others, which it could not see from a condition on cells.
    Edge cases: it holds for every row where one of those partitions takes NULL, unreadable or late values too, and for
    every early one where one of them takes these.
    """
    attribute = None if first is None or domain.partition is None else domain[domain.partition]
    if first is None or attribute is None or first > min(attribute.null_cell, *strays(attribute)[::2]):
        return EVERY_ROW
    name, stored = columns[attribute.name]
    if isinstance(attribute, Dates) and stored in TIMES:
        start, end = (dialect.day(attribute.start(place)) for place in (0, first))
    elif isinstance(attribute, IntegerRange) and stored is Stored.INTEGER:
        start, end = str(attribute.lower), str(attribute.lower + first)
    else:
        return EVERY_ROW
    begun = f"raw_.{name} >= {start} AND " if strays(attribute)[1] >= first else ""
    return f"{begun}raw_.{name} < {end}"


def counting(
    dialect: Dialect,
    table: str,
    columns: Columns,
    domain: Domain,
    unit: Unit,
    secret: str,
    *,
    people: bool,
    among: str = EVERY_ROW,
    joined: str | None = None,
) -> str:
    """The statement: lines (k0, k1, ..., rows), one for each coded row that occurs, in their order; with `people`,
    lines (k0, k1, ..., person), one for each row that is kept, with its unit's number.

    `columns` has SQL and storage for each stored column; `secret` is SQL for a text of two keys of 64 characters: that
    of the choice, and that of this opening, by which units are numbered. Rows that do not meet `among` are left out.
    `joined` is a SELECT that `table` is the name of, where rows are those of several tables.

    Bounded as in `core/source/duckdb.py`: a unit keeps its first max_contributions rows in the order of the partition,
    inside one in that of a keyed hash of unit, cells, and the running number of the row among the unit's equal ones.
    Rows of units that have no more than that are neither hashed nor ordered.
    """
    keys = Keys.of(domain)
    numbers = [f"k{place}" for place in range(len(keys.groups))]
    listed = ", ".join(numbers)
    source = f"{table} AS raw_"
    if unit.column is None:
        rows = coded_rows(dialect, f"{source} WHERE {among}", columns, domain, keys, {}, {})
        counted = f"SELECT {listed}, count(*) AS {HOW_MANY} FROM ({rows}) AS coded"
        return f"{counted} GROUP BY {listed} ORDER BY {listed}"
    raw, stored = columns[unit.column]
    if stored not in (*TEXTS, Stored.INTEGER):
        raise SourceError(f"the unit column {unit.column} must be text or a whole number in the database")
    who = f"raw_.{raw}" if stored is Stored.INTEGER else dialect.text(f"raw_.{raw}")
    opening = f"substr({secret}, 65, 64)"
    k, carried, among = unit.max_contributions, {"unit_": "units.u"}, among + dialect.one_group(who)
    ids = f"SELECT {who} AS u FROM {source} WHERE raw_.{raw} IS NOT NULL AND {among}"
    units = (
        f"SELECT {dialect.of_group('u')} AS u, count(*) AS rows_ FROM ({ids}) AS ids GROUP BY {dialect.group_key('u')}"
    )
    if people:
        numbered = dialect.leading_number(dialect.sha256(dialect.joined([opening, dialect.text("u")])))
        units = f"SELECT u, rows_, {numbered} AS {PERSON} FROM ({units}) AS counted_"
        carried[PERSON] = f"units.{PERSON}"
        few_rows = f"{source} JOIN units ON {who} = units.u WHERE units.rows_ <= {k} AND {among}"
    else:
        units += f" HAVING count(*) > {k}"
        within = f"units.u IS NULL AND raw_.{raw} IS NOT NULL AND {among}"
        few_rows = f"{source} LEFT JOIN units ON {who} = units.u WHERE {within}"
    parts = {} if domain.partition is None else {"part": domain.partition}
    many_rows = f"{source} JOIN units ON {who} = units.u WHERE units.rows_ > {k} AND {among}"
    few, many = (coded_rows(dialect, rows, columns, domain, keys, carried, parts) for rows in (few_rows, many_rows))
    unit_text = dialect.text("unit_")
    parts_hashed = [choice_key(secret), dialect.length(unit_text), unit_text, *numbers, "copy_"]
    hashed = dialect.sha256(dialect.joined(parts_hashed))
    one_unit = dialect.group_key("unit_")
    copy = f"row_number() OVER (PARTITION BY {one_unit}, {listed} ORDER BY {one_unit})"
    copies = f"SELECT many.*, {copy} AS copy_ FROM ({many}) AS many"
    hashes = f"SELECT copies.*, {hashed} AS hash_ FROM ({copies}) AS copies{dialect.fence}"
    order = f"row_number() OVER (PARTITION BY {one_unit} ORDER BY {''.join(f'{part}, ' for part in parts)}hash_)"
    ranked = f"SELECT hashes.*, {order} AS rank_ FROM ({hashes}) AS hashes"
    selected = f"{listed}, {PERSON}" if people else listed
    kept_rows = f"SELECT {selected} FROM ({ranked}) AS ranked WHERE rank_ <= {k}"
    kept_rows += f" UNION ALL SELECT {selected} FROM ({few}) AS few"
    first = "" if joined is None else f"{table} {dialect.each_time} ({joined}), "
    if people:
        return f"WITH {first}units AS ({units}) SELECT {selected} FROM ({kept_rows}) AS kept ORDER BY {listed}"
    counted = f"SELECT {listed}, count(*) AS {HOW_MANY} FROM ({kept_rows}) AS kept"
    return f"WITH {first}units AS ({units}) {counted} GROUP BY {listed} ORDER BY {listed}"


def choice_key(secret: str) -> str:
    """SQL for the key of the choice, of SQL for the secret."""
    return f"substr({secret}, 1, 64)"


def coded_rows(
    dialect: Dialect,
    rows: str,
    columns: Columns,
    domain: Domain,
    keys: Keys,
    carried: dict[str, str],
    parts: dict[str, str],
) -> str:
    """Rows (carried ..., parts ..., k0, k1, ...): what is read, its cells, and the numbers made of these, one inside
    the other. `rows` is what follows FROM, with the table as raw_; `carried` are names for other columns of it, `parts`
    for cells."""
    readings = [f"{sql} AS {name}" for name, sql in carried.items()]
    cells, joins = list(carried), []
    for place, attribute in enumerate(domain.attributes):
        name, stored = columns[attribute.name]
        raw = f"raw_.{name}"
        column = coded(dialect, attribute, place, raw, stored)
        readings += [f"{column.reading} AS r{place}", f"CASE WHEN {raw} IS NULL THEN 1 ELSE 0 END AS n{place}"]
        cells.append(f"{column.cell} AS c{place}")
        joins.append(column.join)
    read = f"SELECT {', '.join(readings)} FROM {rows}{dialect.fence}"
    inner = f"SELECT {', '.join(cells)} FROM ({read}) AS rows_{''.join(joins)}{dialect.fence}"
    outer = [*carried, *(f"c{domain.place(column)} AS {name}" for name, column in parts.items())]
    for place, group in enumerate(keys.groups):
        terms = (f"c{domain.place(name)} * {dialect.as_integer(str(keys.place(name)[1]))}" for name in group)
        outer.append(f"{' + '.join(terms)} AS k{place}")
    return f"SELECT {', '.join(outer)} FROM ({inner}) AS cells_"

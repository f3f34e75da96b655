"""The operations that the row -> cell rule is made of, each one piece of SQL; a dialect says how it is spelt.

What stands here holds for PostgreSQL, MariaDB, Spark and DuckDB alike; a subclass overrides what its engine spells in
another way. servers.proof.md says of every operation what it means, and why all spellings mean the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import date
from enum import Enum


class Stored(Enum):
    """What the catalog says a column holds, as far as the rule tells it apart."""

    TEXT = "text"
    PADDED = "text padded with blanks"  # CHAR(n): trailing blanks are not there
    INTEGER = "integer"
    DECIMAL = "decimal"
    FLOAT = "float"
    BOOLEAN = "boolean"
    DATE = "date"
    LOCAL_TIME = "local time"
    ZONED_TIME = "time in a zone"


class Dialect(ABC):
    """SQL for the operations; every argument that is a str is SQL, unless it is called name, text or pattern."""

    whole_type = "DECIMAL(38, 0)"
    real_type = "DOUBLE"
    integer_type = "BIGINT"
    fence = ""  # behind a sub-query that must be computed once, not once per use
    each_time = "AS"  # before a sub-query with a name that had better be computed once per use

    def name(self, name: str) -> str:
        """A column or table of exactly this name."""
        return '"' + name.replace('"', '""') + '"'

    def literal(self, text: str) -> str:
        return "'" + text.replace("'", "''") + "'"

    def real(self, number: float) -> str:
        """A constant of 64 bits; exact, since all engines read the shortest text of a float back."""
        return f"CAST('{float(number)!r}' AS {self.real_type})"

    def day(self, day: date) -> str:
        return f"DATE '{day.isoformat()}'"

    @abstractmethod
    def text(self, value: str) -> str:
        """Text that is equal to no other text, whatever the column's collation says."""

    def trimmed(self, value: str) -> str:
        """Without blanks around it, and nothing else cut off."""
        return f"trim(BOTH ' ' FROM {self.text(value)})"

    @abstractmethod
    def matches(self, value: str, pattern: str) -> str:
        """Whether a regular expression of plain characters, sets, groups, |, ? and {m,n} fits the whole text."""

    def as_real(self, value: str) -> str:
        """A number or the text of one as a float of 64 bits; total on what NUMBER allows and on all integers."""
        return f"CAST({value} AS {self.real_type})"

    def decimal_as_real(self, value: str) -> str:
        """An exact number as the nearest float; those beyond 1e300, and those nearer to 0 than 1e-300, as these."""
        return self.as_real(value)

    def finite_order(self, value: str) -> str:
        """A float that can be compared: NULL for NaN."""
        return f"nullif({value}, {self.real(float('nan'))})"

    def whole(self, value: str) -> str:
        """An integer, or the text of one with up to 37 digits, exactly."""
        return f"CAST({value} AS {self.whole_type})"

    def whole_of_decimal(self, value: str) -> str:
        """The whole number that an exact number is, up to 37 digits; NULL where it has a fraction."""
        return f"CASE WHEN floor({value}) = {value} THEN {self.whole(value)} END"

    def floor(self, real: str) -> str:
        """The largest integer that is not above a float within 2^53."""
        return f"CAST(floor({real}) AS {self.integer_type})"

    def as_integer(self, value: str) -> str:
        return f"CAST({value} AS {self.integer_type})"

    def day_of_text(self, value: str) -> str:
        """The day that a text begins with, of which it is known to be one."""
        return f"CAST(substr({value}, 1, 10) AS DATE)"

    def day_of(self, value: str, stored: Stored) -> str:
        """The day of a date or a time; of a time in a zone, the day in UTC."""
        return f"CAST({value} AS DATE)"

    def days_since(self, day: str, first: date) -> str:
        return f"({day} - {self.day(first)})"

    def part(self, field: str, day: str) -> str:
        """YEAR or MONTH of a day, an integer."""
        return self.as_integer(f"EXTRACT({field} FROM {day})")

    def quotient(self, number: str, by: int) -> str:
        """Whole-number division; the number is not negative."""
        return f"({number} / {by})"

    def joined(self, parts: Sequence[str]) -> str:
        """The texts of parts that are not NULL, with / between them."""
        return f"concat_ws('/', {', '.join(parts)})"

    def length(self, value: str) -> str:
        """How many characters of Unicode a text has."""
        return f"char_length({value})"

    def group_key(self, value: str) -> str:
        """What equal texts have in common and others do not, however long they are: for GROUP BY and PARTITION BY."""
        return value

    def of_group(self, value: str) -> str:
        """The text that all rows of a group have, beside `GROUP BY group_key(text)`."""
        return value

    def one_group(self, unit: str) -> str:
        """A further condition, by which an engine is asked about some units at a time; none where about all at once."""
        return ""

    @abstractmethod
    def sha256(self, value: str) -> str:
        """SHA-256 of a text in UTF-8, in a form that is ordered like its hexadecimal text."""

    def leading_number(self, hashed: str) -> str:
        """The first 60 bits of what `sha256` gives, as an integer."""
        return self.as_integer(f"conv(substr({hashed}, 1, 15), 16, 10)")

    def keys(self, keys: Sequence[str], name: str) -> str:
        """A relation of this name, (key_, cell): constants, numbered from 0."""
        lines = ", ".join(f"({key}, {place})" for place, key in enumerate(keys))
        return f"(VALUES {lines}) AS {name}(key_, cell)"

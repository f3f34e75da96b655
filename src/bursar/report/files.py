"""Answers as files; the ending of the name says which kind."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bursar.core.domain import Value
from bursar.errors import Unsupported
from bursar.report import answer_columns as frames
from bursar.report import plots as picture
from bursar.report.answer_columns import Tabular, columns_of, library


def csv_text(answer: Tabular) -> str:
    """The table as CSV: group columns, and for each aggregate its value, low and high. NULL is an empty field."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = columns_of(answer)
    writer.writerow([column.name for column in columns])
    writer.writerows(zip(*([_plain(value) for value in column.values] for column in columns), strict=True))
    return text.getvalue()


def write_csv(answer: Tabular, path: Path) -> None:
    """Write a CSV file."""
    with written(path):
        path.write_text(csv_text(answer), encoding="utf-8", newline="")


def write_parquet(answer: Tabular, path: Path) -> None:
    """Write a Parquet file. Needs `pyarrow`."""
    parquet = library("pyarrow.parquet", extra="arrow", what="a Parquet file")
    with written(path):
        parquet.write_table(frames.to_arrow(answer), path)


def write_picture(answer: Tabular, path: Path) -> None:
    """Write a picture. Needs `matplotlib`."""
    drawn = picture.picture_of(answer)
    with written(path):
        drawn.savefig(path, dpi=120)


Writer = Callable[[Tabular, Path], None]

WRITERS: dict[str, Writer] = {
    ".csv": write_csv,
    ".parquet": write_parquet,
    ".png": write_picture,
    ".svg": write_picture,
    ".pdf": write_picture,
}
"""By the ending of the name."""


def check(path: Path, *, kinds: tuple[str, ...] = tuple(WRITERS)) -> None:
    """Refuse a file that could not be written, before anything is paid for."""
    ending = path.suffix.lower()
    if ending not in kinds:
        raise Unsupported(f"a file that ends in {ending or 'nothing'} cannot be written\ntry: {_or(kinds)}")
    if WRITERS[ending] is write_parquet:
        library("pyarrow.parquet", extra="arrow", what="a Parquet file")
    if WRITERS[ending] is write_picture:
        library("matplotlib", extra="plot", what="a picture")
    try:
        possible = path.parent.is_dir() and not path.is_dir() and "\0" not in path.name
    except (OSError, ValueError):  # too long a name
        possible = False
    if not possible:
        raise Unsupported(f"there is no folder {str(path.parent)!r} to write {path.name!r} into")


def write(answer: Tabular, path: Path) -> None:
    """Write the answer as what the ending of the name says."""
    check(path)
    WRITERS[path.suffix.lower()](answer, path)


@contextmanager
def written(path: Path) -> Iterator[None]:
    """Turns what the system says about a file that cannot be written into an error of ours."""
    try:
        yield
    except (OSError, ValueError) as fault:
        why = getattr(fault, "strerror", None) or "the name is refused"
        raise Unsupported(f"{str(path)!r} cannot be written: {why}") from None


def _plain(value: Value) -> Value:
    """As it stands in a file: a whole number without its .0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _or(endings: tuple[str, ...]) -> str:
    return f"{', '.join(endings[:-1])} or {endings[-1]}" if len(endings) > 1 else endings[0]

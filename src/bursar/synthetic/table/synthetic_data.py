"""What a run hands over: rows that are made up, and how far to believe them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bursar.arrays import Codes
from bursar.core.domain import Domain
from bursar.report.columns import library
from bursar.synthetic.report.report import Report
from bursar.synthetic.table.files import labels_of, write_rows

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, kw_only=True, eq=False)
class SyntheticData:
    """Rows that are made up, and a report on how far to believe them."""

    domain: Domain
    codes: Codes  # the cell of every row in every column
    report: Report
    charge: float  # what this run has added to what is spent

    def __len__(self) -> int:
        return len(self.codes)

    def __str__(self) -> str:
        return self.report.summary()

    def write(self, path: str | Path) -> None:
        """The rows as a CSV or Parquet file, by the ending of the name."""
        write_rows(self.domain, self.codes, Path(path))

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a pandas data frame."""
        pd = library("pandas", extra="pandas", what="a pandas data frame")
        labels = labels_of(self.domain)
        return pd.DataFrame(
            {own.name: pd.Series(own.values).take(self.codes[:, place]).array for place, own in enumerate(labels)}
        )

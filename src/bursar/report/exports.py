"""The part of an answer that hands it over to other tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bursar.report.columns import Tabular

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    from matplotlib.axes import Axes


class Shown:
    """Exports have one column for each group column, and for each aggregate its value, `_low` and `_high`."""

    def to_pandas(self: Tabular) -> pandas.DataFrame:
        """A pandas data frame; `frame.attrs` says goal, confidence, cost and source. Needs `pandas`."""
        from bursar.report import frames

        return frames.to_pandas(self)

    def df(self: Tabular) -> pandas.DataFrame:
        """The same, as DuckDB calls it."""
        from bursar.report import frames

        return frames.to_pandas(self)

    def to_polars(self: Tabular) -> polars.DataFrame:
        """A polars data frame. Needs `polars`."""
        from bursar.report import frames

        return frames.to_polars(self)

    def to_arrow(self: Tabular) -> pyarrow.Table:
        """An Arrow table; its metadata say goal, confidence, cost and source. Needs `pyarrow`."""
        from bursar.report import frames

        return frames.to_arrow(self)

    def to_csv(self: Tabular, path: str | Path | None = None) -> str:
        """The table as CSV, also written to a file where one is named."""
        from bursar.report import files

        if path is not None:
            files.write_csv(self, Path(path))
        return files.csv_text(self)

    def to_parquet(self: Tabular, path: str | Path) -> None:
        """Write a Parquet file. Needs `pyarrow`."""
        from bursar.report import files

        files.write_parquet(self, Path(path))

    def plot(self: Tabular, ax: Any = None, *, output: str | None = None) -> Axes:
        """Draw the numbers with their error bars, on axes of your own or on new ones. Needs `matplotlib`.

        `output` names the aggregate to draw; all of them share the axes unless it is given.
        """
        from bursar.report import plots as picture

        return picture.plot(self, ax, output=output)

    def _repr_html_(self: Tabular) -> str:
        from bursar.report import notebook

        return notebook.table(self)

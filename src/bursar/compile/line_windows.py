"""GROUP BY, OVER and ORDER BY over lines of answers, with error bars.

A choice of lines by noisy numbers is carried along: a line is shown or not, by the noisy numbers, and it is certainly
there, or only perhaps; what is added up over lines has bars that are wide enough for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import numpy as np

from bursar.arrays import Reals
from bursar.compile.lines import (
    UNKNOWN,
    YES,
    Column,
    Flags,
    LabelColumn,
    LineTable,
    TruthColumn,
    Whole,
    always_null,
    as_number,
    evaluate,
    is_null,
    is_numeric,
    never_null,
    take,
    truth_of,
)
from bursar.compile.scalar import Exact
from bursar.errors import QueryError
from bursar.estimation.derived import Derived
from bursar.sql.terms import Fold, LineSort, Term, Window

MOST_COMPARED = 2_000
"""Most lines of a partition of which each is compared with each other, where an order is by noisy numbers."""


# ------------------------------------------------------------------------------------------------------- order


def display_order(sorts: Sequence[tuple[LineSort, Column]], lines: int) -> Whole:
    """Lines in order, by what is shown; those that stand equal stay as they were."""
    keys = [_sort_numbers(sort, column) for sort, column in sorts]
    return np.lexsort([np.arange(lines), *keys[::-1]]).astype(np.int64) if keys else np.arange(lines, dtype=np.int64)


def _sort_numbers(sort: LineSort, column: Column) -> Reals:
    """Numbers that sort as the column does."""
    match column:
        case LabelColumn():
            values = np.array([np.nan if rank is None else rank for rank in _ranks(column)], np.float64)
        case TruthColumn():
            values = np.where(column.value == UNKNOWN, np.nan, column.value.astype(np.float64))
        case _:  # an average that may be of nobody stands where NULL does
            values = np.where(never_null(column), column.value, np.nan)
    key = -values if sort.descending else values
    return np.where(np.isnan(key), -np.inf if sort.nulls_first else np.inf, key)


def _ranks(column: LabelColumn) -> list[int | None]:
    """The place of each value among those that occur, in ascending order; None for NULL."""
    distinct = sorted({value for value in column.values if value is not None}, key=_sort_key)
    place = {value: number for number, value in enumerate(distinct)}
    return [None if value is None else place[value] for value in column.values]


def _sort_key(value: Exact) -> tuple[int, float, str]:
    match value:
        case str():
            return 2, 0.0, value
        case date():
            return 1, float(value.toordinal()), ""
        case None:
            return 3, 0.0, ""
    return 0, float(value), ""


def places_before(table: LineTable, sorts: Sequence[tuple[LineSort, Column]]) -> tuple[Whole, Whole]:
    """How many lines stand before each one: the least number, and the most."""
    group = np.zeros(len(table), np.int64)
    for number, (sort, column) in enumerate(sorts):
        if isinstance(column, Derived) and np.any(column.low != column.high):
            return _within(table, group, sort, column, last=number == len(sorts) - 1)
        key = _sort_numbers(sort, column)
        _, group = np.unique(
            np.stack([group, np.unique(key, return_inverse=True)[1].reshape(-1)]), axis=1, return_inverse=True
        )
        group = group.reshape(-1).astype(np.int64)
    place = group * len(table) + np.arange(len(table))  # those that stand equal stay as they were
    order = np.argsort(place)
    certain, every = np.empty(len(table), np.int64), np.empty(len(table), np.int64)
    certain[order] = np.cumsum(table.certain[order]) - table.certain[order]
    every[order] = np.arange(len(table))
    return certain, every


def _within(table: LineTable, group: Whole, sort: LineSort, column: Derived, *, last: bool) -> tuple[Whole, Whole]:
    """The same by a noisy number, within groups of lines that come one after the other."""
    low, high = (-column.high, -column.low) if sort.descending else (column.low, column.high)
    unsure = np.isnan(column.value) if column.sure is None else ~column.sure
    low, high = np.where(unsure, -np.inf, low), np.where(unsure, np.inf, high)
    least, most = np.zeros(len(table), np.int64), np.zeros(len(table), np.int64)
    certain_before = every_before = 0
    for number in np.unique(group):
        lines = np.flatnonzero(group == number)
        sure = lines[table.certain[lines]]
        least[lines] = certain_before + np.searchsorted(np.sort(high[sure]), low[lines], side="left")
        most[lines] = every_before + np.searchsorted(np.sort(low[lines]), high[lines], side="right") - 1
        certain_before, every_before = certain_before + len(sure), every_before + len(lines)
    return least, np.maximum(most, least)


# ------------------------------------------------------------------------------------------------------ groups


def group_lines(
    table: LineTable, keys: tuple[Term, ...] | None, folds: Sequence[Fold]
) -> tuple[LineTable, dict[Term, Column]]:
    """GROUP BY over lines: a line for each group, and what keys and aggregates are there."""
    columns = [evaluate(key, table, {}) for key in keys or ()]
    labels = [_exactly(column, key.position) for key, column in zip(keys or (), columns, strict=True)]
    tuples = list(zip(*labels, strict=True)) if labels else [()] * len(table)
    number = {key: place for place, key in enumerate(dict.fromkeys(tuples))}
    if keys is None or not keys:
        number = {(): 0}
    group = np.array([number[key] for key in tuples], np.int64)
    shown, certain = np.zeros(len(number), np.bool_), np.zeros(len(number), np.bool_)
    np.logical_or.at(shown, group, table.shown)
    np.logical_or.at(certain, group, table.certain)
    if not keys:
        shown[:] = certain[:] = True
    computed: dict[Term, Column] = {
        key: LabelColumn(tuple(label[place] for label in number)) for place, key in enumerate(keys or ())
    }
    remarks = list(table.remarks)
    for fold in folds:
        of = None if fold.of is None else evaluate(fold.of, table, {})
        shown_here, certain_here = table.shown, table.certain
        if fold.condition is not None:
            test = truth_of(evaluate(fold.condition, table, {}), fold.position, len(table))
            shown_here, certain_here = shown_here & (test.value == YES), certain_here & (test.low == YES)
            possible = test.high == YES
        else:
            possible = np.ones(len(table), np.bool_)
        if fold.by is not None and of is not None:
            by = evaluate(fold.by, table, {})
            flags = (shown_here, certain_here, possible)
            computed[fold], doubtful = _chosen_line(fold, of, _in_order(by), group, len(number), flags)
            if not isinstance(by, LabelColumn):
                remarks.append(_choice_remark(fold.function, len(number), doubtful))
            continue
        computed[fold] = fold_lines(fold.function, of, group, len(number), shown_here, certain_here, possible)
    return LineTable({}, shown, certain, tuple(dict.fromkeys(remarks))), computed


def _in_order(column: Column) -> Derived:
    """A column as numbers that lie in its order: text and days by their places."""
    if isinstance(column, LabelColumn) and not is_numeric(column):
        return as_number(LabelColumn(tuple(_ranks(column))))
    return as_number(column)


def _choice_remark(function: str, groups: int, doubtful: int) -> str:
    end = "largest" if function == "arg_max" else "smallest"
    words = f"the line with the {end} noisy number is taken, at no cost"
    if not doubtful:
        return f"{words}; with the confidence of the error bars, it is the right one"
    where = f"in {doubtful} of {groups} groups " if groups > 1 else ""
    return f"{words}; {where}another one may be the right one"


def _chosen_line(
    fold: Fold, of: Column, by: Derived, group: Whole, groups: int, flags: tuple[Flags, Flags, Flags]
) -> tuple[Column, int]:
    """What stands on the line of each group with the largest number, or smallest, and in how many groups that is open.

    A line can have that place unless one that is certainly there has a larger number for certain. Of what has an error
    itself, the bar covers that of all lines that can. NULL on either side takes no part, as in DuckDB.
    """
    sign = 1.0 if fold.function == "arg_max" else -1.0
    low, high = (by.low, by.high) if sign > 0 else (-by.high, -by.low)
    shown, certain, possible = flags
    there = shown & ~np.isnan(by.value) & ~is_null(of)
    sure = certain & never_null(by) & never_null(of)
    best, least = np.full(groups, -np.inf), np.full(groups, -np.inf)
    np.maximum.at(best, group[there], sign * by.value[there])
    np.maximum.at(least, group[sure], low[sure])
    not_null = ~is_null(of) if isinstance(of, LabelColumn) else np.ones(len(shown), np.bool_)
    rivals = possible & not_null & (high >= least[group])
    winner = np.full(groups, -1, np.int64)
    for line in np.flatnonzero(there & (sign * by.value == best[group]))[::-1].tolist():
        winner[group[line]] = line  # of equal ones the first
    open_still = int(np.sum((np.bincount(group[rivals], minlength=groups) > 1) | (winner < 0)))
    if isinstance(of, LabelColumn):
        return LabelColumn(tuple(None if line < 0 else of.values[line] for line in winner.tolist())), open_still
    number = as_number(of, fold)
    lowest, highest = np.full(groups, np.inf), np.full(groups, -np.inf)
    np.minimum.at(lowest, group[rivals], number.low[rivals])
    np.maximum.at(highest, group[rivals], number.high[rivals])
    nobody = ~np.isfinite(lowest) & ~np.isfinite(highest)
    value = np.full(groups, np.nan)
    value[winner >= 0] = number.value[winner[winner >= 0]]
    somebody = np.bincount(group[sure], minlength=groups) > 0
    ends = np.where(nobody, -np.inf, lowest), np.where(nobody, np.inf, highest)
    return Derived(value, ends[0], ends[1], somebody), open_still


def _exactly(column: Column, position: int) -> tuple[Exact, ...]:
    match column:
        case LabelColumn():
            return column.values
        case TruthColumn(exact=True):
            return tuple(None if truth == UNKNOWN else bool(truth == YES) for truth in column.value)
    raise QueryError("lines are put together by group columns, and not by numbers with an error", position=position)


def fold_lines(
    function: str, of: Column | None, group: Whole, groups: int, shown: Flags, certain: Flags, possible: Flags
) -> Column:
    """An aggregate over the lines of each group; a line that may be there or not counts in the wider end."""
    if of is None or function == "count":
        not_null = np.ones(len(shown), np.bool_) if of is None else ~is_null(of)
        sure = certain if of is None else certain & never_null(of)
        counted = [np.bincount(group[flags], minlength=groups) for flags in (shown & not_null, sure, possible)]
        value, low, high = (number.astype(np.float64) for number in counted)
        return Derived(value, low, high)
    if isinstance(of, LabelColumn) and function in ("min", "max") and not is_numeric(of):
        return _extreme_label(of, group, groups, shown, function == "max")
    number = as_number(of)
    there, sure = shown & ~np.isnan(number.value), certain & never_null(of)
    nobody = np.bincount(group[there], minlength=groups) == 0
    somebody = np.bincount(group[sure], minlength=groups) > 0
    low, high = np.where(possible, number.low, 0.0), np.where(possible, number.high, 0.0)
    match function:
        case "sum":
            value = _added(number.value, group, groups, there)
            least, most = _sum_ends(low, high, sure, group, groups)
        case "avg":
            counts = np.bincount(group[there], minlength=groups)
            value = _added(number.value, group, groups, there) / np.maximum(counts, 1)
            least, most = _average_ends(number, group, groups, sure, possible)
        case _:
            value, least, most = _extreme_ends(number, group, groups, (there, sure, possible), function == "max")
    return Derived(np.clip(np.where(nobody, np.nan, value), least, most), least, most, somebody)


def _added(numbers: Reals, group: Whole, groups: int, lines: Flags) -> Reals:
    added: Reals = np.bincount(group[lines], weights=numbers[lines], minlength=groups).astype(np.float64)
    return added


def _sum_ends(low: Reals, high: Reals, sure: Flags, group: Whole, groups: int) -> tuple[Reals, Reals]:
    everything = np.ones(len(low), np.bool_)
    lower = _added(np.where(sure, low, np.minimum(low, 0.0)), group, groups, everything)
    upper = _added(np.where(sure, high, np.maximum(high, 0.0)), group, groups, everything)
    return lower, upper


def _average_ends(number: Derived, group: Whole, groups: int, sure: Flags, possible: Flags) -> tuple[Reals, Reals]:
    """Of the averages of ends where all lines are certain; else an average lies between the extremes."""
    lines = np.flatnonzero(possible)
    lowest, highest = np.full(groups, np.inf), np.full(groups, -np.inf)
    np.minimum.at(lowest, group[lines], number.low[lines])
    np.maximum.at(highest, group[lines], number.high[lines])
    counts = np.bincount(group[lines], minlength=groups)
    every = np.bincount(group[lines], weights=(~sure[lines]).astype(np.float64), minlength=groups) == 0
    safe = np.maximum(counts, 1)
    low = np.where(every, _added(np.where(possible, number.low, 0.0), group, groups, possible) / safe, lowest)
    high = np.where(every, _added(np.where(possible, number.high, 0.0), group, groups, possible) / safe, highest)
    return np.where(counts > 0, low, -np.inf), np.where(counts > 0, high, np.inf)


def _extreme_ends(
    number: Derived, group: Whole, groups: int, flags: tuple[Flags, Flags, Flags], most: bool
) -> tuple[Reals, Reals, Reals]:
    """Of MAX: at least the largest lower end of a line that is certain, at most the largest upper end of any."""
    there, sure, possible = flags
    sign = 1.0 if most else -1.0
    low, high = (number.low, number.high) if most else (-number.high, -number.low)
    value, least, greatest = (np.full(groups, -np.inf) for _ in range(3))
    np.maximum.at(value, group[there], sign * number.value[there])
    np.maximum.at(least, group[sure], low[sure])
    np.maximum.at(greatest, group[possible], high[possible])
    lowest = np.full(groups, np.inf)
    np.minimum.at(lowest, group[possible], low[possible])
    least = np.where(np.isinf(least), lowest, least)
    least, greatest = np.where(np.isinf(least), -np.inf, least), np.where(greatest == -np.inf, np.inf, greatest)
    return (sign * value, least, greatest) if most else (sign * value, -greatest, -least)


def _extreme_label(of: LabelColumn, group: Whole, groups: int, shown: Flags, most: bool) -> LabelColumn:
    best: list[Exact] = [None] * groups
    for value, place, is_shown in zip(of.values, group.tolist(), shown.tolist(), strict=True):
        if value is None or not is_shown:
            continue
        if best[place] is None or (_sort_key(value) > _sort_key(best[place])) == most:
            best[place] = value
    return LabelColumn(tuple(best))


# ----------------------------------------------------------------------------------------------------- windows


def over_lines(window: Window, table: LineTable, computed: dict[Term, Column]) -> Column:
    """A function OVER lines."""
    labels = [_exactly(evaluate(part, table, computed), part.position) for part in window.partition]
    tuples = list(zip(*labels, strict=True)) if labels else [()] * len(table)
    number = {key: place for place, key in enumerate(dict.fromkeys(tuples))}
    group = np.array([number[key] for key in tuples], np.int64)
    parts = [evaluate(part, table, computed) for part in window.parts]
    sorts = [(sort, evaluate(sort.by, table, computed)) for sort in window.order]
    whole = window.frame == (None, None) or (not sorts and window.frame is None)
    if window.function in ("sum", "avg", "count", "min", "max") and whole:
        of = parts[0] if parts else None
        every = np.ones(len(table), np.bool_)
        folded = fold_lines(window.function, of, group, max(len(number), 1), table.shown, table.certain, every)
        return take(folded, group)
    pieces: list[tuple[Whole, Column]] = []
    for place in range(len(number)):
        lines = np.flatnonzero(group == place)
        piece = table.take(lines)
        inner = [take(part, lines) for part in parts]
        pieces.append((lines, _ordered_window(window, piece, inner, [(s, take(c, lines)) for s, c in sorts])))
    if not pieces:
        return _nothing()
    return _joined(pieces, len(table))


def _nothing() -> Derived:
    none = np.zeros(0)
    return Derived(none, none, none)


def _joined(pieces: Sequence[tuple[Whole, Column]], lines: int) -> Column:
    """Columns of parts of the lines as one."""
    if all(isinstance(column, LabelColumn) for _, column in pieces):
        labels: list[Exact] = [None] * lines
        for places, column in pieces:
            assert isinstance(column, LabelColumn)
            for place, label in zip(places.tolist(), column.values, strict=True):
                labels[place] = label
        return LabelColumn(tuple(labels))
    value, low, high = (np.zeros(lines) for _ in range(3))
    sure, absent = np.ones(lines, np.bool_), np.zeros(lines, np.bool_)
    for places, column in pieces:
        number = as_number(column)
        value[places], low[places], high[places] = number.value, number.low, number.high
        sure[places], absent[places] = never_null(number), always_null(number)
    return Derived(value, low, high, sure, absent=absent)


def _ordered_window(
    window: Window, piece: LineTable, parts: Sequence[Column], sorts: Sequence[tuple[LineSort, Column]]
) -> Column:
    """A function of the lines of one partition, in an order."""
    order = display_order(sorts, len(piece))
    place = np.empty(len(piece), np.int64)
    place[order] = np.cumsum(piece.shown[order]) - 1  # among those that are shown
    exact_order = all(not isinstance(column, Derived) or np.array_equal(column.low, column.high) for _, column in sorts)
    fixed = exact_order and bool(np.all(piece.certain))
    match window.function:
        case "row_number" | "rank" | "dense_rank" | "percent_rank" | "cume_dist":
            return _ranked(window.function, piece, sorts, place)
        case "ntile":
            return _tiled(_whole(window, parts[:1], 1), piece, sorts, place)
        case "lag" | "lead" | "first_value" | "last_value" | "nth_value":
            return _neighbour(window, piece, parts, _Frames(window, piece, sorts, order), fixed=fixed)
    return _framed(window, piece, parts, sorts, order, fixed=fixed)


def _ranked(function: str, piece: LineTable, sorts: Sequence[tuple[LineSort, Column]], place: Whole) -> Derived:
    least, most = places_before(piece, sorts)
    peers = _peers(sorts, len(piece))
    first = np.zeros(len(piece), np.int64)  # how many shown lines stand before a line and its peers
    seen: dict[int, int] = {}
    for line in np.argsort(place, kind="stable").tolist():
        if piece.shown[line]:
            first[line] = seen.setdefault(int(peers[line]), int(place[line]))
    match function:
        case "row_number":
            return _counted_from_one(place, least, most)
        case "rank":
            return _counted_from_one(first, np.minimum(least, first), np.maximum(most, first))
        case "dense_rank":
            distinct = {peer: number for number, peer in enumerate(dict.fromkeys(sorted(seen, key=lambda p: seen[p])))}
            value = np.array([distinct.get(int(peer), 0) for peer in peers], np.float64) + 1.0
            exact_order = np.array_equal(least, most) and bool(np.all(piece.certain))
            low = value if exact_order else np.where(least > 0, 2.0, 1.0)
            return Derived(value, np.minimum(low, value), np.maximum(most + 1.0, value))
    fewest, every = max(int(piece.certain.sum()), 1), max(len(piece), 1)
    shown = max(int(piece.shown.sum()), 1)
    start, before, behind = (numbers.astype(np.float64) for numbers in (first, least, most))
    if function == "percent_rank":
        share = start / max(shown - 1, 1)
        least_share, most_share = np.minimum(before, start) / max(every - 1, 1), behind / max(fewest - 1, 1)
        return Derived(share, np.minimum(least_share, share), np.clip(most_share, share, 1.0))
    equal = np.array([int(np.sum((peers == peer) & piece.shown)) for peer in peers], np.float64)
    share = (equal + start) / shown
    return Derived(share, np.minimum((before + 1.0) / every, share), np.ones(len(piece)))


LARGEST_GIVEN = 10_000
"""The largest number that NTILE, LAG, LEAD and NTH_VALUE take."""


def _whole(window: Window, parts: Sequence[Column], least: int) -> int:
    """The last of these, a whole number that is the same for all lines."""
    given = set(parts[-1].values) if parts and isinstance(parts[-1], LabelColumn) else {None}
    number = given.pop() if len(given) == 1 else least if not given else None
    if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= LARGEST_GIVEN:
        raise QueryError(
            f"{window.function.upper()} takes a whole number from {least} to {LARGEST_GIVEN}", position=window.position
        )
    return number


def _tiled(tiles: int, piece: LineTable, sorts: Sequence[tuple[LineSort, Column]], place: Whole) -> Derived:
    """In which of `tiles` parts of equal size each line is, the longer parts first.

    The part rises with how many lines stand before a line, and falls with how many there are: the ends are taken of
    the least and the most of both.
    """
    least, most = places_before(piece, sorts)
    fewest, every = int(piece.certain.sum()), len(piece)
    value = _tile(place, int(piece.shown.sum()), tiles)
    low, high = _tile(least, every, tiles), _tile(np.minimum(most, every - 1), max(fewest, 1), tiles)
    return Derived(value, np.minimum(low, value), np.maximum(high, value))


def _tile(before: Whole, lines: int, tiles: int) -> Reals:
    """The part of a line with so many before it, of so many lines in all; those behind the last are in the last."""
    short, longer = divmod(lines, tiles)
    in_long = before // (short + 1)
    behind = longer + (before - longer * (short + 1)) // max(short, 1)
    tile = np.where(before < longer * (short + 1), in_long, behind) + 1
    numbers: Reals = np.clip(tile, 1, tiles).astype(np.float64)
    return numbers


def _counted_from_one(value: Whole, low: Whole, high: Whole) -> Derived:
    """Numbers of lines before, as places."""
    places, least, most = (number.astype(np.float64) + 1.0 for number in (value, low, high))
    return Derived(places, least, most)


def _peers(sorts: Sequence[tuple[LineSort, Column]], lines: int) -> Whole:
    """A number for each line, the same for lines that stand equal."""
    if not sorts:
        return np.zeros(lines, np.int64)
    keys = np.stack([_sort_numbers(sort, column) for sort, column in sorts])
    return np.unique(keys, axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)


class _Frames:
    """The lines that are shown, in their order, and which of them each line looks at."""

    def __init__(
        self, window: Window, piece: LineTable, sorts: Sequence[tuple[LineSort, Column]], order: Whole
    ) -> None:
        self.lines: list[int] = order[piece.shown[order]].tolist()
        self.place = {line: number for number, line in enumerate(self.lines)}
        self._frame = window.frame
        peers = _peers(sorts, len(piece)).tolist()
        last = {peers[line]: number for number, line in enumerate(self.lines)}
        self._last_peer = [last[peers[line]] for line in self.lines]

    def of(self, line: int) -> list[int]:
        """The lines in the frame of one; none where it is not shown."""
        number = self.place.get(line)
        if number is None:
            return []
        if self._frame is None:
            return self.lines[: self._last_peer[number] + 1]
        before, behind = self._frame
        start = 0 if before is None else max(0, number - before)
        return self.lines[start : len(self.lines) if behind is None else max(0, number + behind + 1)]


def _neighbour(window: Window, piece: LineTable, parts: Sequence[Column], frames: _Frames, *, fixed: bool) -> Column:
    """LAG, LEAD, FIRST_VALUE and their like: of another line; which one is certain only where the order is."""
    of, name = parts[0], window.function
    steps = 1
    if name == "nth_value" or (name in ("lag", "lead") and len(parts) > 1):
        steps = _whole(window, parts[1:2], 1 if name == "nth_value" else 0)
    other: list[int | None] = []
    for line in range(len(piece)):
        number = frames.place.get(line, -1)
        among = frames.lines if name in ("lag", "lead") else frames.of(line)
        places = {"lag": number - steps, "lead": number + steps, "last_value": len(among) - 1, "nth_value": steps - 1}
        wanted = places.get(name, 0)
        other.append(among[wanted] if number >= 0 and 0 <= wanted < len(among) else None)
    default = parts[2] if window.function in ("lag", "lead") and len(parts) > 2 else None
    if isinstance(of, LabelColumn) and not is_numeric(of):
        if default is not None and not isinstance(default, LabelColumn):
            raise QueryError("what stands in for a missing line is of the type of the others", position=window.position)
        missing = (None,) * len(piece) if default is None else default.values
        values = [missing[line] if place is None else of.values[place] for line, place in enumerate(other)]
        return LabelColumn(tuple(values))
    numbers = as_number(of)
    value, low, high = (np.full(len(piece), end) for end in (np.nan, -np.inf, np.inf))
    sure, absent = np.zeros(len(piece), np.bool_), np.zeros(len(piece), np.bool_)
    for line, target in enumerate(other):
        if target is not None:
            value[line], low[line], high[line] = numbers.value[target], numbers.low[target], numbers.high[target]
            sure[line] = fixed and bool(never_null(numbers)[target])
            absent[line] = fixed and bool(always_null(numbers)[target])
        elif default is not None:
            other_value = as_number(default)
            value[line], low[line], high[line] = other_value.value[line], other_value.low[line], other_value.high[line]
            sure[line] = fixed
        else:
            absent[line] = fixed
    if not fixed and len(piece):
        low, high = np.full(len(piece), np.min(numbers.low)), np.full(len(piece), np.max(numbers.high))
        if default is not None:
            low, high = np.minimum(low, as_number(default).low), np.maximum(high, as_number(default).high)
    return Derived(value, low, high, sure, absent=absent)


def _framed(
    window: Window,
    piece: LineTable,
    parts: Sequence[Column],
    sorts: Sequence[tuple[LineSort, Column]],
    order: Whole,
    *,
    fixed: bool,
) -> Derived:
    """An aggregate over the lines around each line."""
    if len(piece) > MOST_COMPARED:
        raise QueryError(f"OVER with an order takes at most {MOST_COMPARED} lines", position=window.position)
    of = parts[0] if parts else None
    before, behind = window.frame if window.frame is not None else (None, 0)
    frames = _Frames(window, piece, sorts, order)
    results: list[Derived] = []
    empty: list[bool] = []
    least, most = places_before(piece, sorts)
    every = np.arange(len(piece))
    for line in range(len(piece)):
        shown = np.isin(every, frames.of(line))
        if fixed:
            certain = possible = shown
        elif before is None and behind in (0, None):
            ahead = most < least[line] if behind == 0 else np.ones(len(piece), np.bool_)
            certain = piece.certain & (ahead | (every == line))
            possible = (least <= most[line]) if behind == 0 else np.ones(len(piece), np.bool_)
        else:
            certain, possible = np.zeros(len(piece), np.bool_), np.ones(len(piece), np.bool_)
        folded = fold_lines(window.function, of, np.zeros(len(piece), np.int64), 1, shown, certain, possible | shown)
        results.append(as_number(folded))
        empty.append(fixed and not shown.any() and window.function != "count")
    columns = [np.array([getattr(folded, name)[0] for folded in results]) for name in ("value", "low", "high")]
    sure = np.array([bool(never_null(folded)[0]) for folded in results])
    return Derived(columns[0], columns[1], columns[2], sure, absent=np.array(empty))

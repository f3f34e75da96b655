"""Other spellings of what a question can say, as tools and other dialects write it, in the one that is read here.

Each step is a plain function that changes the tree and keeps its meaning. What only comes near to a question is not
here but in `rewrite/`, and is never run without being asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal

from sqlglot import exp

from bursar.errors import QueryError
from bursar.sql.group_joins import group_joins
from bursar.sql.pivots import as_select, pivots
from bursar.sql.read_terms import REAL
from bursar.sql.series_limits import series_limits
from bursar.sql.subselects import scalar_subselects, scalars_of_lines
from bursar.sql.syntax import FLAGS, Node, bare, position, without_alias
from bursar.sql.value_counts import histograms, modes


def without_schema(tree: Node) -> None:
    """main.people is people, and main.people.age is people.age: there is one database."""
    for node in tree.find_all(exp.Table, exp.Column):
        for part in ("db", "catalog"):
            if node.args.get(part) is not None:
                node.set(part, None)


_RESPELLED = (
    exp.Anonymous, exp.WithinGroup, exp.ApproxQuantile, exp.ApproxDistinct, exp.ToChar, exp.DateAdd, exp.DateSub,
    exp.DateBin, exp.Bracket, exp.TimestampTrunc, exp.DateTrunc, exp.RegrCount, exp.RegrAvgx, exp.RegrAvgy,
    exp.UnixToTime, exp.Extract, exp.Date,
)  # fmt: skip


def standard_functions(tree: Node) -> None:
    """MEAN is AVG, STD is STDDEV, DATE_PART is EXTRACT, DATE_SUB is -, PERCENTILE_CONT(p) WITHIN GROUP a quantile."""
    for node in reversed(list(tree.find_all(*_RESPELLED))):  # what is inside of others comes first
        standard = _standard(node)
        if standard is not None:
            standard.meta.setdefault("start", position(node))
            node.replace(standard)

    for node in tree.find_all(exp.Anonymous):
        if node.name.upper() == "AGE":
            raise QueryError(
                "of an age, whole years and months are known: EXTRACT(YEAR FROM AGE(day, birthday)); days between two "
                "days are their difference, and AGE(x) is AGE(CURRENT_DATE, x)",
                position=position(node),
            )


def _standard(node: Node) -> Node | None:
    if isinstance(node, exp.RegrCount | exp.RegrAvgx | exp.RegrAvgy):
        return _of_pairs(node)
    if isinstance(node, exp.ApproxDistinct):
        return exp.Count(this=exp.Distinct(expressions=[node.this.copy()]))
    if isinstance(node, exp.Bracket):
        return _one_of_quantiles(node)
    if isinstance(node, exp.UnixToTime):
        return _moment(node.this, node.args.get("scale"))
    if isinstance(node, exp.Extract):
        return _part_of_age(node)
    if isinstance(node, exp.Date):
        alone = [name for name, part in node.args.items() if part] == ["this"]
        return exp.Cast(this=node.this.copy(), to=exp.DataType.build("date")) if alone else None
    if isinstance(node, exp.ToChar):
        return _formatted(node.this, str(node.args["format"].name)) if node.args.get("format") is not None else None
    if isinstance(node, exp.TimestampTrunc | exp.DateTrunc):
        return _period_last(node)
    if isinstance(node, exp.DateBin):
        return _bucket(node.this, node.expression)
    if isinstance(node, exp.ApproxQuantile):
        return exp.PercentileCont(this=node.this.copy(), expression=node.args["quantile"].copy())
    if isinstance(node, exp.DateAdd | exp.DateSub) and isinstance(node.expression, exp.Interval):
        moved = exp.Add if isinstance(node, exp.DateAdd) else exp.Sub
        return moved(this=node.this.copy(), expression=node.expression.copy())
    if isinstance(node, exp.WithinGroup):
        ordered = node.expression.find(exp.Ordered)
        if isinstance(node.this, exp.Mode) and ordered is not None:
            return exp.Mode(this=ordered.this.copy())
        if not isinstance(node.this, exp.PercentileCont | exp.PercentileDisc) or ordered is None:
            return None
        share = node.this.this.copy()
        if ordered.args.get("desc"):
            share = exp.Sub(this=exp.Literal.number(1), expression=share)
        return type(node.this)(this=ordered.this.copy(), expression=share)
    parts = [part.copy() for part in node.expressions]
    match node.name.upper(), parts:
        case "MEAN", [of]:
            return exp.Avg(this=of)
        case "APPROX_PERCENTILE", [of, share]:
            return exp.PercentileCont(this=of, expression=share)
        case "FAVG", [of]:
            return exp.Avg(this=of)
        case "FSUM" | "SUMKAHAN" | "KAHAN_SUM", [of]:
            return exp.Sum(this=of)
        case "VAR", [of]:
            return exp.Variance(this=of)
        case "STD", [of]:
            return exp.Stddev(this=of)
        case "IFF", [test, yes, no]:
            return exp.If(this=test, true=yes, false=no)
        case "ZEROIFNULL", [of]:
            return exp.Coalesce(this=of, expressions=[exp.Literal.number(0)])
        case "DATE_PART" | "DATEPART", [unit, of]:
            part = exp.Extract(this=exp.Var(this=str(unit.name).upper()), expression=of)
            return _part_of_age(part) or part
        case "TO_DATE" | "TO_TIMESTAMP", [of, *form]:
            return _moment(of, form[0] if form else None)
        case "ANON_COUNT" | "ANON_SUM" | "ANON_AVG", [of]:
            kinds = {"ANON_COUNT": exp.Count, "ANON_SUM": exp.Sum, "ANON_AVG": exp.Avg}
            return kinds[node.name.upper()](this=of)
        case "FORMAT_DATE", [exp.Literal() as form, of]:
            return exp.TimeToStr(this=of, format=form)
        case "TO_CHAR" | "DATE_FORMAT", [of, exp.Literal() as form]:
            return _formatted(of, str(form.this))
        case "TIME_BUCKET", [width, of]:
            return _bucket(width, of)
        case "DATE_SUB" | "DATE_ADD", [of, exp.Interval() as interval]:
            return (exp.Sub if node.name.upper() == "DATE_SUB" else exp.Add)(this=of, expression=interval)
        case "DATEADD" | "TIMESTAMPADD", [unit, amount, of]:
            return exp.Add(this=of, expression=exp.Interval(this=amount, unit=exp.Var(this=str(unit.name).upper())))
    return None


def _of_pairs(node: Node) -> Node:
    """REGR_COUNT(y, x) counts the rows where neither is NULL; REGR_AVGX and REGR_AVGY are averages over these rows."""
    not_null = [exp.Not(this=exp.Is(this=side.copy(), expression=exp.Null())) for side in (node.this, node.expression)]
    aggregate: Node = exp.Count(this=exp.Star(), big_int=True)
    if not isinstance(node, exp.RegrCount):
        aggregate = exp.Avg(this=(node.expression if isinstance(node, exp.RegrAvgx) else node.this).copy())
    return exp.Filter(this=aggregate, expression=exp.Where(this=exp.and_(*not_null)))


def _one_of_quantiles(node: Node) -> Node | None:
    """APPROX_QUANTILES(x, 4)[OFFSET(1)], of the list of all quarters the second one, is QUANTILE_CONT(x, 0.25)."""
    all_of, place = node.this, node.expressions[0]
    if not isinstance(all_of, exp.ApproxQuantiles) or not isinstance(place, exp.Anonymous):
        return None
    first = {"OFFSET": 0, "ORDINAL": 1}.get(place.name.upper())
    if first is None or len(place.expressions) != 1 or len(node.expressions) != 1:
        return None
    parts, number = (str(part.this) for part in (all_of.expression, place.expressions[0]))
    if not parts.isdecimal() or not number.isdecimal() or not 0 < int(number) - first < int(parts) <= 1000:
        return None  # the ends are the least and the greatest value, which are a single person's
    share = Decimal(int(number) - first) / Decimal(int(parts))
    return exp.PercentileCont(this=all_of.this.copy(), expression=exp.Literal.number(f"{share:f}"))


def _period_last(node: Node) -> Node | None:
    """DATE_TRUNC(day, MONTH) is DATE_TRUNC('month', day); the parser takes the first argument for the period."""
    period, column = node.this, node.args.get("unit")
    named = isinstance(period, exp.Column) and not period.table and period.name.upper() in _PERIODS
    if not named or column is None or column.name.upper() in _PERIODS | _OTHER_PERIODS:
        return None
    return exp.TimestampTrunc(this=exp.column(str(column.name)), unit=exp.Var(this=str(period.name).upper()))


_PERIODS = {"DAY", "WEEK", "MONTH", "QUARTER", "YEAR"}
_OTHER_PERIODS = {"MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DECADE", "CENTURY", "MILLENNIUM"}


def _moment(of: Node, form: Node | None) -> Node | None:
    """TO_TIMESTAMP('2024-01-31 00:00:00', 'YYYY-MM-DD ...') is that moment, however the time behind it is written."""
    written = "" if form is None else str(form.name)
    if not isinstance(of, exp.Literal) or not of.is_string or (form is not None and _YEAR_FIRST.match(written) is None):
        return None
    return exp.Cast(this=of.copy(), to=exp.DataType.build("TIMESTAMP" if len(str(of.this)) > 10 else "DATE"))


_YEAR_FIRST = re.compile("yyyy-mm-dd|%Y-%m-%d", re.IGNORECASE)


def _part_of_age(node: Node) -> Node | None:
    """EXTRACT(YEAR FROM AGE(a, b)) is the number of whole years from b to a; so for months beyond them.

    A month is whole from the same day of the next one on. An age before birth is that of the other way round, negative.
    """
    age, part = bare(node.expression), str(node.this.name).upper()
    if not isinstance(age, exp.Anonymous) or age.name.upper() != "AGE" or part not in ("YEAR", "MONTH"):
        return None
    if len(age.expressions) != 2:
        return None
    later, earlier = (bare(side) for side in age.expressions)
    years = exp.IntDiv if part == "YEAR" else exp.Mod
    there, back = (
        exp.paren(years(this=exp.paren(_whole_months(*pair)), expression=exp.Literal.number(12)))
        for pair in ((earlier, later), (later, earlier))
    )
    before = exp.LT(this=later.copy(), expression=earlier.copy())
    return exp.Case(ifs=[exp.If(this=before, true=exp.Neg(this=back))], default=there)


def _whole_months(first: Node, last: Node) -> Node:
    begun = exp.DateDiff(this=last.copy(), expression=first.copy(), unit=exp.Var(this="MONTH"))
    days = (exp.Day(this=day.copy()) for day in (last, first))
    short = exp.If(this=exp.LT(this=next(days), expression=next(days)), true=exp.Literal.number(1))
    return exp.Sub(this=begun, expression=exp.Case(ifs=[short], default=exp.Literal.number(0)))


def _formatted(of: Node, form: str) -> Node | None:
    """TO_CHAR(x, 'YYYY-MM') and DATE_FORMAT(x, '%Y-%m') are STRFTIME(x, '%Y-%m'); TO_CHAR(x, 'ID') is a number."""
    if (field := _NUMBERED.get(form.upper())) is not None:
        return exp.Cast(this=exp.Extract(this=exp.Var(this=field), expression=of.copy()), to=exp.DataType.build("TEXT"))
    for word, sign in _FORMATS:
        form = form.replace(word, sign)
    if re.fullmatch(r"(?:%[YmdBbAaj]|[-/., ])+", form) is None:
        return None
    return exp.TimeToStr(this=of.copy(), format=exp.Literal.string(form))


_NUMBERED = {"ID": "ISODOW", "Q": "QUARTER"}
_FORMATS = (
    ("FMMonth", "%B"), ("FMDay", "%A"), ("YYYY", "%Y"), ("DDD", "%j"), ("DD", "%d"), ("MM", "%m"), ("Mon", "%b"),
    ("Dy", "%a"),
)  # fmt: skip
"""Month and Day without FM are filled up with blanks, and so left out here."""


_BUCKETS = {
    "1 day": "DAY",
    "1 week": "WEEK",
    "7 days": "WEEK",
    "1 month": "MONTH",
    "3 months": "QUARTER",
    "1 year": "YEAR",
}


def _bucket(width: Node, of: Node) -> Node | None:
    """TIME_BUCKET of a calendar unit is DATE_TRUNC: buckets begin on a Monday, the first of a month or of January."""
    if isinstance(width, exp.Interval):
        text = f"{width.this.name} {width.args['unit'].name}".lower() if width.args.get("unit") is not None else ""
    else:
        text = str(width.name).lower()
    number, _, unit = text.partition(" ")
    unit = unit.rstrip("s") + ("" if number == "1" else "s")
    period = _BUCKETS.get(f"{number} {unit}")
    return None if period is None else exp.TimestampTrunc(this=of.copy(), unit=exp.Var(this=period))


def named_windows(tree: Node) -> None:
    """OVER w is OVER (...), as WINDOW w AS (...) says; OVER (w ROWS 2 PRECEDING) has more to it."""
    for select in tree.find_all(exp.Select):
        named: dict[str, Node] = {}
        for window in select.args.get("windows") or []:
            _filled_in(window, named)
            named[window.this.name.casefold()] = window
        select.set("windows", None)
        for window in select.find_all(exp.Window):
            if window.parent_select is select:
                _filled_in(window, named)


def _filled_in(window: Node, named: dict[str, Node]) -> None:
    name = window.args.get("alias")
    if name is None:
        return
    if name.name.casefold() not in named:
        raise QueryError(
            f"there is no window {name.name}; WINDOW {name.name} AS (...) makes one", position=position(name)
        )
    meant = named[name.name.casefold()].copy()
    for part in ("partition_by", "order", "spec"):
        if not window.args.get(part):
            window.set(part, meant.args.get(part))
    window.set("alias", None)


def plain_limit(tree: Node) -> None:
    """FETCH FIRST 3 ROWS ONLY is LIMIT 3."""
    for select in tree.find_all(exp.Select):
        limit = select.args.get("limit")
        options = None if not isinstance(limit, exp.Fetch) else limit.args.get("limit_options")
        plain = options is None or not (options.args.get("percent") or options.args.get("with_ties"))
        if isinstance(limit, exp.Fetch) and limit.args.get("count") is not None and plain:
            select.set("limit", exp.Limit(expression=limit.args["count"].copy()))


def all_groups(tree: Node) -> None:
    """GROUP BY ALL groups by what is selected and is no aggregate; so does DISTINCT where there is none."""
    for select in tree.find_all(exp.Select):
        group, distinct = select.args.get("group"), select.args.get("distinct")
        every = enumerate(select.expressions, 1)
        placed = [(place, item) for place, item in every if not _aggregated(without_alias(item))]
        columns, items = [exp.Literal.number(place) for place, _ in placed], [item for _, item in placed]
        if group is not None and group.args.get("all") and not group.expressions:
            select.set("group", exp.Group(expressions=columns) if columns else None)
        elif distinct is not None and not distinct.args.get("on") and not any(item.is_star for item in items):
            if group is None and len(items) == len(select.expressions):
                select.set("group", exp.Group(expressions=columns))
                select.set("distinct", None)
            elif group is None and not items:
                select.set("distinct", None)  # one line is distinct
            elif group is not None and _all_selected(select):
                select.set("distinct", None)  # groups are distinct
        elif distinct is not None and group is not None:
            _first_of_each(select, distinct.args["on"])


def _first_of_each(select: Node, on: Node | None) -> None:
    """DISTINCT ON (a) keeps the first line of each a, in the order of ORDER BY; without one, any line might be it."""
    order = select.args.get("order")
    if on is None or order is None or select.args.get("qualify") is not None:
        return
    items = select.expressions
    selected = {str(item.alias).casefold(): item.this for item in items if item.alias}

    def meant(node: Node) -> Node:
        """What a place in the select list or an alias stands for."""
        if isinstance(node, exp.Literal) and str(node.this).isdecimal() and 0 < int(node.this) <= len(items):
            return without_alias(items[int(node.this) - 1]).copy()
        alias = isinstance(node, exp.Column) and not node.table and node.name.casefold() in selected
        return selected[node.name.casefold()].copy() if alias else node.copy()

    ordered = order.copy()
    for part in ordered.expressions:
        part.set("this", meant(part.this))
    first = exp.Window(this=exp.RowNumber(), partition_by=[meant(part) for part in on.expressions], order=ordered)
    select.set("qualify", exp.Qualify(this=exp.EQ(this=first, expression=exp.Literal.number(1))))
    select.set("distinct", None)


def _aggregated(node: Node) -> bool:
    return node.find(exp.AggFunc, exp.Window, *FLAGS) is not None


def _all_selected(select: Node) -> bool:
    """Whether everything that is grouped by is selected too, so that no two lines are the same."""
    items = [without_alias(item) for item in select.expressions]
    names = {item.alias.casefold() for item in select.expressions if item.alias}
    return all(
        isinstance(bare(part), exp.Literal)
        or bare(part) in items
        or (isinstance(bare(part), exp.Column) and bare(part).name.casefold() in names)
        for part in select.args["group"].expressions
    )


def ordered_by_all(tree: Node) -> None:
    """ORDER BY ALL orders by all that is selected, from left to right."""
    for select in tree.find_all(exp.Select):
        order = select.args.get("order")
        sorts = [] if order is None else order.expressions
        named = bare(sorts[0].this) if len(sorts) == 1 else None
        if isinstance(named, exp.Var) and named.name.upper() == "ALL":
            places = [exp.Literal.number(place) for place in range(1, len(select.expressions) + 1)]
            options = {name: sorts[0].args.get(name) for name in ("desc", "nulls_first")}
            order.set("expressions", [exp.Ordered(this=place, **options) for place in places])


def stars_without(tree: Node) -> None:
    """SELECT * EXCLUDE (a) FROM a grouped SELECT is the list of its other columns."""
    for select in tree.find_all(exp.Select):
        star = select.expressions[0] if len(select.expressions) == 1 else None
        names = _names_read(select, tree)
        if not isinstance(star, exp.Star) or not star.args.get("except_") or names is None:
            continue
        left_out = {column.name.casefold() for column in star.args["except_"]}
        columns = [
            exp.column(exp.to_identifier(name, quoted=True)) for name in names if name.casefold() not in left_out
        ]
        alone = not any(star.args.get(name) for name in ("replace", "rename", "ilike"))
        if columns and left_out <= {name.casefold() for name in names} and alone:
            select.set("expressions", columns)


def _names_read(select: Node, tree: Node) -> list[str] | None:
    """The names of the columns of the SELECT that another reads; None where it reads a table, or one has no name."""
    source, clause = select.args.get("from_"), tree.args.get("with_")
    table = None if source is None or select.args.get("joins") else source.this
    inner = table.this if isinstance(table, exp.Subquery) else None
    if isinstance(table, exp.Table) and clause is not None:
        inner = next((cte.this for cte in clause.expressions if cte.alias.casefold() == table.name.casefold()), None)
    names = [item.alias_or_name for item in inner.expressions] if isinstance(inner, exp.Select) else []
    return names if names and "" not in names and "*" not in names else None


def plain_casts(tree: Node) -> None:
    """A cast changes nothing of what is a day, or a whole number, already; and x::DATE is compared like x."""
    for node in list(tree.find_all(exp.Cast, exp.TryCast)):
        inner = bare(node.this)
        kind = node.to.this
        if isinstance(inner, exp.Literal) and not inner.is_string and node.arg_key in ("expression", "quantile"):
            if kind in REAL and isinstance(node.parent, exp.PercentileCont | exp.PercentileDisc):
                node.replace(inner.copy())
            continue
        day = kind in _MOMENTS and (
            isinstance(inner, exp.TimestampTrunc | exp.DateTrunc) or (isinstance(inner, exp.Column) and _compared(node))
        )
        whole = isinstance(inner, (*_PARTS_OF_DAYS, exp.Floor, exp.IntDiv)) and inner.args.get("decimals") is None
        if day or (kind in _WHOLE and whole):
            node.replace(inner.copy())
        elif kind in _WHOLE and isinstance(inner, exp.Trunc) and isinstance(bare(inner.this), exp.Div):
            quotient = bare(inner.this)
            node.replace(exp.IntDiv(this=quotient.this.copy(), expression=quotient.expression.copy()))


_MOMENTS = (exp.DataType.Type.DATE, exp.DataType.Type.TIMESTAMP, exp.DataType.Type.TIMESTAMPNTZ)
_WHOLE = (exp.DataType.Type.INT, exp.DataType.Type.BIGINT, exp.DataType.Type.SMALLINT)
_PARTS_OF_DAYS = (exp.Extract, exp.Year, exp.Quarter, exp.Month, exp.Day, exp.DayOfMonth, exp.DayOfWeek)
_COMPARING = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In, exp.TimestampTrunc, exp.DateTrunc)


def _compared(node: Node) -> bool:
    """Whether a cast stands where only days can: beside a comparison, or inside of a part of a day."""
    return isinstance(node.parent, (*_COMPARING, *_PARTS_OF_DAYS))


def plain_conditions(tree: Node) -> None:
    """HAVING COUNT(*) > 0 of a question without groups, or 1 = 1 in it, leaves its one line as it is."""
    for select in tree.find_all(exp.Select):
        having = select.args.get("having")
        if having is None or select.args.get("group") is not None:
            continue
        test = bare(having.this)
        counts = isinstance(test, exp.GT) and isinstance(bare(test.this), exp.Count)
        if counts and isinstance(bare(test.expression), exp.Literal) and str(bare(test.expression).this) == "0":
            select.set("having", None)


def tuples_in_lists(tree: Node) -> None:
    """(a, b) IN ((1, 2), (3, 4)) is a = 1 AND b = 2 OR a = 3 AND b = 4."""
    for node in list(tree.find_all(exp.In)):
        columns = node.this.expressions if isinstance(node.this, exp.Tuple) else []
        rows = [row.expressions for row in node.expressions if isinstance(row, exp.Tuple)]
        if columns and len(rows) == len(node.expressions) > 0 and all(len(row) == len(columns) for row in rows):
            pairs = [
                [exp.EQ(this=c.copy(), expression=value.copy()) for c, value in zip(columns, row, strict=True)]
                for row in rows
            ]
            node.replace(exp.Paren(this=exp.or_(*(exp.and_(*row) for row in pairs))))


STEPS: tuple[tuple[Callable[[Node], None], tuple[type[Node], ...]], ...] = (
    (without_schema, (exp.Table, exp.Column)),
    (named_windows, (exp.Window,)),
    (standard_functions, _RESPELLED),
    (plain_limit, (exp.Fetch,)),
    (stars_without, (exp.Star,)),
    (all_groups, (exp.Group, exp.Distinct)),
    (ordered_by_all, (exp.Order,)),
    (plain_casts, (exp.Cast, exp.TryCast)),
    (plain_conditions, (exp.Having,)),
    (tuples_in_lists, (exp.In,)),
    (pivots, (exp.Pivot,)),
    (histograms, (exp.Anonymous,)),
    (modes, (exp.Mode,)),
    (series_limits, (exp.Join,)),
    (group_joins, (exp.Join,)),
    (scalar_subselects, (exp.Subquery,)),
    (scalars_of_lines, (exp.CTE,)),
)
"""Each step in its turn, and the nodes that it looks for: it is not called for a tree that has none of them."""


def spelled(tree: Node) -> Node:
    """A copy of the tree in the spelling that is read here."""
    copy = as_select(tree.copy()) if isinstance(tree, exp.Pivot) else tree.copy()
    if not isinstance(copy, exp.Select | exp.Query):
        return copy
    for step, nodes in STEPS:
        if copy.find(*nodes) is not None:
            step(copy)
    return copy

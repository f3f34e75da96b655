"""Writes the SQL that ibis and SQLAlchemy send for common expressions: `python -m benchmarks.sql_capture`.

Needs `ibis-framework[duckdb]` and `sqlalchemy`, which the project itself does not. The texts are kept in `sql_corpus`,
so that `benchmarks.sql` needs neither.
"""

from __future__ import annotations

import datetime
from pathlib import Path

CORPUS = Path(__file__).with_name("sql_corpus")


def of_ibis() -> list[str]:
    """Expressions of ibis as it writes them for PostgreSQL and DuckDB."""
    import ibis
    from ibis import _

    schema = {
        "age": "int64",
        "sex": "string",
        "region": "string",
        "income": "float64",
        "hours": "int64",
        "member": "boolean",
        "joined": "date",
    }
    t = ibis.table(schema, name="people")
    by_region = t.group_by("region").aggregate(n=_.count())
    monthly = t.group_by(month=_.joined.truncate("M")).aggregate(n=_.count())
    day = ibis.date("2021-06-01")
    expressions = [
        t.count(),
        t.age.mean(),
        t.income.sum(),
        t.age.std(),
        t.age.var(how="pop"),
        t.age.median(),
        t.age.quantile(0.9),
        t.age.min(),
        t.joined.max(),
        t.region.nunique(),
        t.region.value_counts(),
        t.region.topk(3),
        t.region.topk(2, by=t.income.mean()),
        t.filter(t.age >= 65).count(),
        t.filter((t.age > 30) & (t.sex == "F")).income.mean(),
        t.filter(t.member).count(),
        t.filter(~t.member).count(),
        t.filter(t.region.isin(["Lakeside", "Westmoor"])).count(),
        t.filter(t.region.notin(["Lakeside"])).count(),
        t.filter(t.joined >= day).count(),
        t.filter(t.joined.between(day, ibis.date("2021-12-31"))).count(),
        t.filter(t.joined.year() == 2022).count(),
        t.filter(t.region.like("W%")).count(),
        t.filter(t.region.upper() == "LAKESIDE").count(),
        t.filter(t.region.startswith("N")).count(),
        t.filter(t.income.isnull()).count(),
        t.filter(t.income.notnull()).count(),
        by_region,
        by_region.order_by(ibis.desc("n")),
        by_region.order_by(ibis.desc("n")).limit(3),
        by_region.filter(_.n > 100),
        by_region.filter(_.region != "Lakeside"),
        by_region.mutate(share=_.n / _.n.sum()),
        by_region.mutate(rank=ibis.row_number().over(order_by=ibis.desc("n"))),
        by_region.limit(5),
        by_region.n.sum(),
        by_region.n.mean(),
        by_region.n.max(),
        by_region.select("region"),
        t.group_by(["region", "sex"]).aggregate(n=_.count(), income=_.income.mean(), hours=_.hours.sum()),
        t.group_by("region").aggregate(rich=_.count(where=_.income > 50000), all=_.count()),
        t.group_by("region").aggregate(rate=(_.income > 50000).mean()),
        t.group_by("region").aggregate(rate=_.member.mean()),
        t.group_by("region").aggregate(members=_.member.sum()),
        t.group_by(old=_.age >= 65).aggregate(n=_.count()),
        t.group_by(decade=_.age // 10 * 10).aggregate(n=_.count()),
        t.group_by(bucket=_.age.bucket([0, 18, 65, 100])).aggregate(n=_.count()),
        t.group_by(band=ibis.cases((_.age < 30, "young"), (_.age < 65, "middle"), else_="old")).aggregate(n=_.count()),
        t.group_by(year=_.joined.year()).aggregate(n=_.count()),
        monthly,
        monthly.order_by("month"),
        monthly.order_by("month").mutate(before=_.n.lag().over(order_by="month")),
        monthly.mutate(total=_.n.cumsum(order_by="month")),
        t.group_by(initial=_.region.substr(0, 1)).aggregate(n=_.count()),
        t.group_by(name=_.region.lower()).aggregate(n=_.count()),
        t.group_by("region").having(_.count() > 50).aggregate(n=_.count()),
        t.aggregate(n=_.count(), mean=_.age.mean(), low=_.age.min(), high=_.age.max()),
        t.aggregate(total=(_.hours * 52).sum()),
        t.aggregate(total=(_.hours * _.age).sum()),
        t.aggregate(each=_.income.sum() / _.hours.sum()),
        t.aggregate(c=_.age.corr(_.hours)),
        t.aggregate(c=_.age.cov(_.hours, how="pop")),
        t.aggregate(rounded=_.age.mean().round(1)),
        t.select("region").distinct(),
        t.select("region", "sex").distinct(),
        t.select("region").distinct().count(),
        t.filter(t.age > 20).group_by("sex").aggregate(n=_.count()).order_by("sex"),
        t.aggregate(n=_.count(), known=_.income.count()),
        t.head(5),
    ]
    texts: list[str] = []
    for dialect in ("postgres", "duckdb"):
        for expression in expressions:
            try:
                texts.append(" ".join(ibis.to_sql(expression, dialect=dialect).split()))
            except Exception as fault:  # some expressions are not there in every dialect
                print(dialect, type(fault).__name__, str(fault)[:80])
    return list(dict.fromkeys(texts))


def of_sqlalchemy() -> list[str]:
    """Statements of SQLAlchemy Core with their parameters written in."""
    import sqlalchemy as sa
    from sqlalchemy.dialects import postgresql

    people = sa.Table(
        "people",
        sa.MetaData(schema="public"),
        sa.Column("age", sa.Integer),
        sa.Column("sex", sa.String),
        sa.Column("region", sa.String),
        sa.Column("income", sa.Numeric),
        sa.Column("hours", sa.Integer),
        sa.Column("member", sa.Boolean),
        sa.Column("joined", sa.Date),
    )
    c, f = people.c, sa.func
    n = f.count().label("n")
    by_region = sa.select(c.region, n).group_by(c.region)
    sub = by_region.subquery()
    cte = by_region.cte("by_region")
    month = f.date_trunc("month", c.joined).label("month")
    statements = [
        sa.select(f.count()).select_from(people),
        sa.select(f.count("*")).select_from(people),
        sa.select(f.count(c.income)),
        sa.select(f.count(sa.distinct(c.region))),
        sa.select(f.sum(c.income), f.avg(c.age)),
        sa.select(f.min(c.age), f.max(c.age)),
        by_region,
        by_region.order_by(sa.desc("n")).limit(3),
        by_region.order_by(n.desc()).limit(3).offset(1),
        by_region.limit(10),
        by_region.having(f.count() > 10),
        by_region.having(c.region != "Lakeside"),
        by_region.where(c.age.between(20, 30)),
        by_region.where(c.region.in_(["Lakeside", "Westmoor"])),
        by_region.where(c.region.not_in(["Lakeside"])),
        by_region.where(c.member),
        by_region.where(~c.member),
        by_region.where(c.member.is_(True)),
        by_region.where(c.income.is_(None)),
        by_region.where(c.region.like("W%")),
        by_region.where(c.region.startswith("W")),
        by_region.where(c.region.ilike("%side")),
        by_region.where(c.joined >= datetime.date(2021, 1, 1)),
        by_region.where(c.joined < datetime.datetime(2022, 1, 1)),
        by_region.where(sa.or_(c.age < 20, c.age > 80)),
        by_region.where(sa.and_(sa.true(), c.age < 20)),
        by_region.where(sa.extract("year", c.joined) == 2022),
        by_region.where(f.lower(c.region) == "lakeside"),
        sa.select(c.region, c.sex, n, f.avg(c.income).label("income"))
        .group_by(c.region, c.sex)
        .order_by(c.region, c.sex),
        sa.select(month, n).group_by(month).order_by(month),
        sa.select(sa.cast(f.date_trunc("month", c.joined), sa.Date).label("m"), n).group_by(sa.text("1")),
        sa.select(sa.extract("year", c.joined).label("y"), n).group_by("y").order_by("y"),
        sa.select(sa.case((c.age < 30, "young"), else_="old").label("band"), n).group_by("band"),
        sa.select(f.sum(sa.case((c.member, 1), else_=0)).label("members"), n),
        sa.select((f.sum(c.income) / f.count()).label("mean")),
        sa.select((f.sum(c.income) / f.nullif(f.count(), 0)).label("mean")),
        sa.select(f.coalesce(f.sum(c.income), 0)),
        sa.select(f.round(f.avg(c.income), 2)),
        sa.select(f.sum(c.hours * 52)),
        sa.select(f.sum(c.hours * c.age)),
        sa.select(c.region, n.op("*")(100)).group_by(c.region),
        sa.select(c.region).distinct(),
        sa.select(c.region).group_by(c.region).order_by(c.region).limit(1000),
        sa.select(c.region, c.sex).distinct().order_by(c.region),
        sa.select(sub).where(sub.c.n > 10),
        sa.select(f.sum(sub.c.n)),
        sa.select(f.avg(sub.c.n), f.max(sub.c.n)),
        sa.select(cte.c.region, cte.c.n).order_by(cte.c.n.desc()).limit(2),
        sa.select(sub.c.region, sub.c.n, f.rank().over(order_by=sub.c.n.desc())),
        sa.select(sub.c.region, (sub.c.n * 1.0 / f.sum(sub.c.n).over()).label("share")),
        sa.select(c.region, n, f.sum(f.count()).over().label("total")).group_by(c.region),
        sa.select(f.count().filter(c.age > 65).label("old"), n),
        sa.select(f.percentile_cont(0.5).within_group(c.age)),
        sa.select(f.stddev_samp(c.age), f.var_pop(c.age)),
        sa.select(f.corr(c.age, c.hours)),
        sa.select(f.count()).select_from(people).where(sa.text("1 = 1")),
        sa.select(people).limit(5),
        sa.select(f.width_bucket(c.age, 0, 100, 10).label("b"), n).group_by("b").order_by("b"),
        sa.select(f.upper(c.region).label("r"), n).group_by(f.upper(c.region)),
        sa.select((c.region + "-" + c.sex).label("r"), n).group_by("r"),
    ]
    dialect = postgresql.dialect()
    compiled = [s.compile(dialect=dialect, compile_kwargs={"literal_binds": True}) for s in statements]
    return list(dict.fromkeys(" ".join(str(text).split()).replace("%%", "%") for text in compiled))


def main() -> None:
    for name, texts in (("ibis", of_ibis()), ("sqlalchemy", of_sqlalchemy())):
        (CORPUS / f"{name}.sql").write_text(";\n".join(texts) + "\n", encoding="utf-8")
        print(f"{name}: {len(texts)}")


if __name__ == "__main__":
    main()

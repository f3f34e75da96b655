"""Whatever is typed, the answer is a Query, a Workload or a QueryError with its place; never another error."""

from __future__ import annotations

from datetime import date

from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st

from bursar.compile import compile
from bursar.core.domain import Categories, Dates, Domain, IntegerRange, Period, Stray
from bursar.errors import QueryError
from bursar.sql import parse

SEEDS = [
    "EXPLAIN SELECT age a, COUNT(*) FILTER (WHERE sex IN ('F', 'M')) FROM people p WHERE p.age IN (3, 9.5) GROUP BY a",
    "SELECT COUNT(*) FROM people WHERE (sex = 'F' OR age = 3) AND \"Home Town\" < DATE '2024-02-01' GROUP BY sex",
    "SELECT /*+ error(50) confidence(95%) */ COUNT(*) n FROM people -- all of them\nWHERE NOT age IN (1, 2);",
    "SELECT sex, COUNT(*) FROM people WHERE age IS NULL AND \"Home Town\" <> '2024-01-01' GROUP BY 1 WITH RMSE 2%",
]
VOCABULARY = """
    SELECT COUNT ( ) * FROM people WHERE AND OR NOT age sex = <> < >= BETWEEN IN IS NULL TRUE GROUP BY 1 -2 .5 1e9 'x' ,
    ; . DATE '2024-01-01' FILTER AS t WITH ERROR 5 % CONFIDENCE EXPLAIN DISTINCT ORDER LIMIT JOIN ON HAVING SUM(age)
    CASE WHEN THEN END OVER UNION ALL EXISTS ANY INTERVAL CAST :: [ ] { } -> $1 ? @ /*+ error(5) */ -- /* ROLLUP CUBE
    PIVOT VALUES LATERAL UNNEST WINDOW QUALIFY USING SAMPLE EXCEPT ~ || ^ # ' ( ) é
"""
WORDS = [*VOCABULARY.split(), '"', "\\", "\x00", "\ud800", "\n", ""]


@st.composite
def mutated(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(1, 6))):
        low = draw(st.integers(0, len(text)))
        high = low + draw(st.integers(0, 12))
        text = text[:low] + draw(st.sampled_from([*WORDS, text[low:high] * 2])) + text[high:]
    return text


junk = st.one_of(
    st.text(max_size=60),
    mutated(),
    st.lists(st.sampled_from(WORDS), max_size=40).map(lambda words: "SELECT " + " ".join(words)),
    st.tuples(st.sampled_from(WORDS), st.integers(1, 3000)).map(lambda pair: "SELECT " + f"{pair[0]} " * pair[1]),
)
DOMAIN = Domain(
    (
        IntegerRange(name="age", lower=0, upper=99, outside=Stray.OTHER),
        Categories(name="sex", values=("F", "M"), null=Stray.OTHER),
        Dates(name="Home Town", first=date(2024, 1, 1), last=date(2024, 12, 31), by=Period.MONTH),
    )
)


def stumbled(fault: BaseException | None) -> bool:
    """Whether an error, or one that caused it, was raised by our own code and not by the parser."""
    while fault is not None:
        last = fault.__traceback__
        while last is not None and last.tb_next is not None:
            last = last.tb_next
        if last is not None and "bursar" in last.tb_frame.f_code.co_filename:
            return True
        fault = fault.__cause__
    return False


@settings(max_examples=800, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(text=junk)
@example(text="SELECT FROM people")
@example(text="SELECT COUNT(*) FROM people WHERE sex < 5 AND sex BETWEEN 'F' AND TRUE")
@example(text="SELECT COUNT(*) FROM people WHERE age < 'nan' AND age < '1e99999999' AND age < 'inf'")
@example(text="SELECT " + "NOT " * 1500 + "1")
@example(text="SELECT COUNT(*) FROM people WHERE " + "(" * 200)
@example(text="SELECT COUNT(*) FROM people WHERE " + " AND ".join(["age = 1"] * 600))
@example(text="SELECT COUNT(*) FROM people WHERE age = " + "9" * 5000)
@example(text="SELECT COUNT(*) FROM people WHERE age < 1e999999999999")
@example(text="SELECT COUNT(*) FROM people WITH ERROR 1e999999999999 CONFIDENCE 1e99999999%")
def test_junk_raises_query_errors_only(text: str) -> None:
    refusal = None
    try:
        compile(parse(text), DOMAIN, "people")
    except QueryError as error:
        refusal = error
    event("accepted" if refusal is None else "refused")
    if refusal is not None:
        assert str(refusal)
        assert -1 <= refusal.position <= len(text)
        assert not stumbled(refusal.__cause__)

"""20,000 texts that are nearly questions: no crash, no warning, and no file is opened."""

from __future__ import annotations

import functools
import random
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from bursar.answer import lines_of
from bursar.compile import Workload, compile
from bursar.errors import QueryError
from bursar.rewrite.suggest import suggest
from bursar.sql import parse
from bursar.sql.tokens import questions_of
from harness.exactly import PEOPLE

FIXTURES = Path(__file__).parents[1] / "fixtures"
TEXTS = {"every fourth": 5_000, "all": 20_000}
VOCABULARY = """
    SELECT COUNT(*) FROM people WHERE AND OR NOT age sex region = <> < IN ( ) NULL GROUP BY 1 , ORDER LIMIT HAVING
    SUM(age) OVER (PARTITION BY PARTITION CASE WHEN THEN END WITH t AS ( ERROR 5 UPPER( || * / % 'x' LAG( RANK() DATE
    '2023-01-01' INTERVAL CAST( :: read_csv('/etc/passwd') COPY ATTACH 'x' CORR(age,hours) MIN(age) QUALIFY ROLLUP
    DISTINCT 1e9 {d ` -- /* ; $1 ROUND( 1e308 TRUE NTH_VALUE( ROWS 1 PRECEDING WINDOW w AS ( ABS(-1) REGR_SLOPE(
"""
WORDS = [*VOCABULARY.split(), '"']
ODD = ("1e9", "1e308", "TRUE", "NULL", "-1", "0", "'x'", "ABS(-1)", "9" * 30)
VALUE = re.compile(r"\b(?:\d+|age|hours|n)\b")
"""A number or a column of a question, and what may stand in for it."""


@functools.cache
def seeds() -> list[str]:
    names = ("spellings.sql", "stages.sql")
    return [question for name in names for question in questions_of((FIXTURES / name).read_text("utf-8"))]


def junk(seed: int) -> str:
    """A question with some of its words replaced, repeated or left out."""
    generator = random.Random(seed)
    words = generator.choice(seeds()).split(" ")
    for _ in range(generator.randint(1, 6)):
        place = generator.randrange(len(words) + 1)
        match generator.randrange(5):
            case 0:
                words.insert(place, generator.choice(WORDS))
            case 1:
                del words[place : place + 1]
            case 2:
                words[place:place] = words[place : place + generator.randint(1, 5)] * generator.randint(1, 4)
            case 3:
                words[place:place] = generator.choice(seeds()).split(" ")[: generator.randint(1, 12)]
            case _:
                odd = generator.choice(ODD)
                words[place : place + 2] = [VALUE.sub(odd, word) for word in words[place : place + 2]]
    return " ".join(words)


def answer(workload: Workload) -> None:
    """Make lines of a question's numbers: some that may be of nobody, some negative, some far off."""
    values = np.resize([0.0, 300.0, -7.0, 41.5, 1e6], workload.map.rows)
    lines_of(workload, workload.derive(values, values - 50.0, values + 50.0), 0.95)


def read(text: str) -> bool:
    """Whether a text is accepted; it is refused in words otherwise."""
    try:
        answer(compile(parse(text), PEOPLE, "people"))
    except QueryError as refusal:
        suggest(text, refusal, PEOPLE, "people")
        return False
    return True


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "many", [pytest.param("every fourth", marks=pytest.mark.heavy), pytest.param("all", marks=pytest.mark.soak)]
)
def test_junk_neither_crashes_nor_opens_a_file(many: str) -> None:
    opened: list[str] = []
    watching = [True]

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if watching[0] and event in ("open", "os.system", "subprocess.Popen", "socket.connect"):
            opened.append(f"{event} {arguments[:1]}")

    texts = [junk(seed) for seed in range(0, TEXTS["all"], TEXTS["all"] // TEXTS[many])]
    for text in seeds():  # what is imported late is there now
        read(text)
    sys.addaudithook(hook)
    accepted = sum(map(read, texts))
    watching[0] = False
    assert not opened, opened[:3]
    assert 0 < accepted < TEXTS[many]

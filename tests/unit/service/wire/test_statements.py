"""Statements taken apart, and those that are no questions."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bursar.errors import GoalError
from bursar.service.wire.failures import WireError, refusal
from bursar.service.wire.settings import SessionSettings
from bursar.service.wire.statements import (
    Accepted,
    Begin,
    CloseCursor,
    CopyOut,
    Deallocate,
    Declare,
    Discard,
    End,
    Explain,
    Fetch,
    Nothing,
    Savepoint,
    Select,
    SetTo,
    Show,
    Statement,
    read,
    split,
)


def test_semicolons_in_quotes_and_comments_separate_nothing() -> None:
    text = """SELECT 'a;''b' AS "x;y" /* ; /* ; */ ; */; -- ; nothing
      SELECT $tag$;$tag$, E'\\';' ;; """
    assert [piece.text.strip() for piece in split(text)] == [
        "SELECT 'a;''b' AS \"x;y\" /* ; /* ; */ ; */",
        "-- ; nothing\n      SELECT $tag$;$tag$, E'\\';'",
    ]
    assert [text[piece.offset :].startswith(piece.text) for piece in split(text)] == [True, True]
    assert split(" ; -- nothing\n /* at all */ ") == []


@pytest.mark.parametrize("text", ["SELECT 'a", 'SELECT "a', "SELECT /* a", "SELECT $x$ a", "SELECT E'\\'"])
def test_what_is_left_open_is_refused(text: str) -> None:
    with pytest.raises(WireError, match="unterminated") as refused:
        split(text)
    assert refused.value.code == "42601"


CASES: dict[str, Statement] = {
    "": Nothing(),
    "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE": Begin("BEGIN"),
    "begin transaction": Begin("BEGIN"),
    "START TRANSACTION": Begin("START TRANSACTION"),
    "COMMIT": End(True),
    "rollback": End(False),
    'SAVEPOINT "_Pg3_1"': Savepoint("SAVEPOINT", "_Pg3_1"),
    "RELEASE x": Savepoint("RELEASE", "x"),
    "ROLLBACK TO SAVEPOINT X": Savepoint("ROLLBACK", "x"),
    "rollback to y": Savepoint("ROLLBACK", "y"),
    "SET bursar.error = '50'": SetTo("bursar.error", "50"),
    "SET bursar.error TO 2%": SetTo("bursar.error", "2%"),
    "SET SESSION TIMEZONE TO 'UTC'": SetTo("timezone", "UTC"),
    "SET TIME ZONE 'UTC'": SetTo("timezone", "UTC"),
    'set search_path = "public"': SetTo("search_path", "public"),
    "SET DateStyle=ISO": SetTo("datestyle", "ISO"),
    "SET x.y TO DEFAULT": SetTo("x.y", None),
    "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY": Accepted("SET"),
    "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE": Accepted("SET"),
    "RESET ALL": SetTo(None, None, "RESET"),
    "RESET bursar.error": SetTo("bursar.error", None, "RESET"),
    "show transaction isolation level": Show("transaction_isolation"),
    "SHOW /* all of it */ TimeZone": Show("timezone"),
    "SHOW ALL": Show("all"),
    "DEALLOCATE ALL": Deallocate(None),
    "DEALLOCATE PREPARE _pg3_0": Deallocate("_pg3_0"),
    "DISCARD ALL": Discard(),
    "CLOSE ALL": CloseCursor(None),
    'CLOSE "c"': CloseCursor("c"),
    "UNLISTEN *": Accepted("UNLISTEN"),
    "FETCH FORWARD 50 FROM c": Fetch("c", 50),
    "fetch 3 in C": Fetch("c", 3),
    'FETCH FORWARD ALL FROM "C"': Fetch("C", None),
    "FETCH c": Fetch("c", 1),
    "MOVE 2 FROM c": Fetch("c", 2, move=True),
    "EXPLAIN SELECT 1": Explain(Select("SELECT 1", 8)),
    "EXPLAIN (COSTS ON)\nSELECT 1": Explain(Select("SELECT 1", 19)),
    "DECLARE c NO SCROLL CURSOR WITHOUT HOLD FOR SELECT 1": Declare("c", Select("SELECT 1", 44)),
    'declare "C" cursor with hold for SELECT 1': Declare("C", Select("SELECT 1", 33), hold=True),
    "COPY (SELECT 1) TO STDOUT": CopyOut(Select("SELECT 1", 6)),
    "COPY (SELECT (1)) TO STDOUT (FORMAT binary)": CopyOut(Select("SELECT (1)", 6), "binary"),
    "COPY ( SELECT 1 ) TO STDOUT WITH CSV HEADER": CopyOut(Select(" SELECT 1 ", 6), "csv", header=True),
}


def test_statements_of_the_session() -> None:
    for text, statement in CASES.items():
        assert read(Select(text)) == statement, text


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("INSERT INTO people VALUES (1)", "25006"),
        ("CREATE TEMPORARY VIEW v AS SELECT 1", "25006"),
        ("EXPLAIN ANALYZE SELECT 1", "0A000"),
        ("EXPLAIN (FORMAT JSON) SELECT 1", "0A000"),
        ("COPY people TO STDOUT", "0A000"),
        ("COPY (SELECT 1) TO '/tmp/x'", "0A000"),
        ("COPY people FROM STDIN", "0A000"),
        ("PREPARE p AS SELECT 1", "0A000"),
        ("FETCH BACKWARD 3 FROM c", "0A000"),
        ("selec 1", "42601"),
        ("123", "42601"),
        ("SAVEPOINT", "42601"),
    ],
)
def test_what_cannot_be_run(text: str, code: str) -> None:
    with pytest.raises(WireError) as refused:
        read(Select(text))
    assert refused.value.code == code


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(WireError):
        for piece in split(text):
            read(piece)


def test_settings_by_every_way_and_back() -> None:
    settings = SessionSettings("ana")
    settings.begin(
        {
            "user": "ana",
            "client_encoding": "'utf-8'",
            "bursar.error": "50",
            "options": "-c bursar.confidence=99% --bursar.bounds=on -c search_path=public",
        }
    )
    assert settings.goal() == {"within": "50", "confidence": "99%"}
    assert settings.bounds
    settings.set("bursar.horizon", "many")
    settings.set("bursar.max_cost", "0.5")
    settings.set("bursar.error", "")
    assert settings.goal() == {"confidence": "99%", "max_cost": 0.5, "horizon": "many"}
    settings.reset()
    assert settings.goal() == {"within": "50", "confidence": "99%"}
    assert settings.get("Server_Version") == "15.0 (Bursar 0.2.0)"
    settings.set("mine.own", "x")
    assert settings.get("mine.own") == "x"
    for name, value, code in (
        ("bursar.error", "-3", "22023"),
        ("bursar.confidence", "2", "22023"),
        ("bursar.horizon", "ever", "22023"),
        ("bursar.bounds", "perhaps", "22023"),
        ("bursar.seed", "1", "42704"),
        ("no_such", "1", "42704"),
        ("server_version", "9", "55P02"),
        ("client_encoding", "LATIN1", "0A000"),
    ):
        with pytest.raises(WireError) as refused:
            settings.set(name, value)
        assert refused.value.code == code, name


def test_who_says_no_accuracy_is_told_how_a_connection_has_one() -> None:
    """Tools write the questions, so that the accuracy cannot stand in them."""
    assert "SET bursar.error" in refusal(GoalError("say how exact the answer must be")).hint
    assert refusal(GoalError("too exact\ntry: WITH ERROR 50")).hint == "WITH ERROR 50"

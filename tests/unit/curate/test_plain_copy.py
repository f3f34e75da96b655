"""CSV as people have it becomes CSV that is read without guessing; what cannot be told is left alone."""

from __future__ import annotations

import csv
import gzip
from datetime import date
from pathlib import Path

import pytest

from bursar.core.domain import Bins, Dates, IntegerRange
from bursar.curate import plain_csv as plain
from bursar.curate.draft_from_data import init
from bursar.curate.plain_csv import plain_copy
from bursar.errors import SourceError

EUROPE = """\
name;price;day;note
"Müller; Hans";1,5;31.12.2023;a
Anna;2,75;01.02.2024;"b ""x\"""
Ben;1.234,5;15.06.2024;
Cleo;-3,1;16.06.2024;c
Dora;NA;17.06.2024;c
"""
EUROPE_PLAIN = [
    ["name", "price", "day", "note"],
    ["Müller; Hans", "1.5", "2023-12-31", "a"],
    ["Anna", "2.75", "2024-02-01", 'b "x"'],
    ["Ben", "1234.5", "2024-06-15", ""],
    ["Cleo", "-3.1", "2024-06-16", "c"],
    ["Dora", "", "2024-06-17", "c"],
]


def copied(folder: Path, text: str | bytes, name: str = "people.csv") -> tuple[str, list[list[str]]] | None:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    found = plain_copy(path, allowed=True)
    if found is None:
        return None
    assert found.path == folder / "people.plain.csv"
    assert path.read_bytes() == (text if isinstance(text, bytes) else text.encode())
    with found.path.open(encoding="utf-8", newline="") as file:
        return found.told, list(csv.reader(file))


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["", "BOM"])
@pytest.mark.parametrize("zipped", [False, True])
def test_semicolons_decimal_commas_and_days(mark: bytes, zipped: bool, tmp_path: Path) -> None:
    data = mark + EUROPE.encode()
    made = copied(tmp_path, gzip.compress(data) if zipped else data, "people.csv.gz" if zipped else "people.csv")
    assert made is not None
    told, rows = made
    assert rows == EUROPE_PLAIN
    assert told == "it has semicolons between its fields; price has decimal commas; day has days as 31.12.2023"


def test_a_file_in_an_old_code_page_is_refused_with_its_line_and_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_bytes("name;age\nAnna;3\nMüller;4\n".encode("cp1252"))
    with pytest.raises(
        SourceError, match=r"not in UTF-8: line 3 .*\ntry: .* iconv -f WINDOWS-1252 -t UTF-8 people.csv"
    ):
        plain_copy(tmp_path / "people.csv", allowed=True)


@pytest.mark.parametrize("code", ["utf-16", "utf-32"])
def test_a_file_in_wide_letters_is_refused_with_the_remedy_for_those(code: str, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_bytes("name,age\nAnna,3\n".encode(code))
    with pytest.raises(SourceError, match=rf"not in UTF-8: line 1 .*\ntry: .* iconv -f {code.upper()} -t UTF-8 people"):
        plain_copy(tmp_path / "people.csv", allowed=True)


@pytest.mark.parametrize("line", ["5,secret", "5,secret,no,more", '"secret,a,no'])
def test_a_broken_line_is_named_and_nothing_of_what_it_says(line: str, tmp_path: Path) -> None:
    rows = [f"{place % 90},{'abc'[place % 3]},yes" for place in range(300)]
    rows[100] = line
    (tmp_path / "people.csv").write_text("age,kind,ok\n" + "\n".join(rows) + "\n", encoding="utf-8")
    with pytest.raises(SourceError, match=r"people.csv cannot be read as CSV: .*line 102 is the first") as refused:
        init(tmp_path / "people.csv", tmp_path / "bursar.toml")
    assert "secret" not in str(refused.value)
    assert "bars" not in str(refused.value)  # a line that fits no separator made DuckDB think of one


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("x;y;secret", "line 52 has 3 fields, and its first line 2"),
        ('"secret;3', "line 52 has a quote that is left open"),
    ],
)
@pytest.mark.parametrize("behind", [0, 50])
def test_a_broken_line_between_semicolons_is_named_too(line: str, why: str, behind: int, tmp_path: Path) -> None:
    rows = [*(f"ann;{place}" for place in range(50)), line, *("bob;3" for _ in range(behind))]
    (tmp_path / "people.csv").write_text("name;age\n" + "\n".join(rows) + "\n", encoding="utf-8")
    with pytest.raises(SourceError, match=why) as refused:
        plain_copy(tmp_path / "people.csv", allowed=True)
    assert "secret" not in str(refused.value)


def test_numbers_among_many_words_are_left_alone_and_it_is_said(tmp_path: Path) -> None:
    made = copied(tmp_path, "name;fee\n" + "a;1,5\n" * 7 + "b;unknown\n" * 3)
    assert made is not None
    assert "fee has decimal commas, and is left as it is, since 30% of its fields are no numbers" in made[0]
    assert made[1][1] == ["a", "1,5"]


def test_tabs_and_bars(tmp_path: Path) -> None:
    for separator, word in (("\t", "tabs"), ("|", "bars")):
        (tmp_path / "people.plain.csv").unlink(missing_ok=True)
        made = copied(tmp_path, "sex,n\nF,1\nM,2\nF,3\n".replace(",", separator))
        assert made == (f"it has {word} between its fields", [["sex", "n"], ["F", "1"], ["M", "2"], ["F", "3"]])


def test_currencies_and_american_days(tmp_path: Path) -> None:
    made = copied(tmp_path, 'when,pay\n12/31/2023,"$1,200.50"\n01/15/2024,$900\n02/20/2024,\n02/21/2024,USD 7\n')
    assert made is not None
    assert made[1][1:] == [["2023-12-31", "1200.50"], ["2024-01-15", "900"], ["2024-02-20", ""], ["2024-02-21", "7"]]


@pytest.mark.parametrize(
    "text",
    [
        "sex,age\nF,1\nM,2\n",
        'sex,name\nF,"Doe, Jane"\nM,"x ""y"""\n',
        "day,age\n2024-01-31,1\n2024-02-01,NA\n2024-02-02,3\n2024-02-03,4\n2024-02-04,4\n",
        'code,sex\n"1,5",F\n"2,5",M\n"3,5",M\n',  # a list, or decimals: nobody can tell
        "zip,sex\n00123,F\n04567,M\n",
        "",
    ],
)
def test_what_is_plain_or_cannot_be_told_is_not_copied(text: str, tmp_path: Path) -> None:
    assert copied(tmp_path, text) is None
    assert not (tmp_path / "people.plain.csv").exists()


def test_days_that_could_be_months_are_left_and_told(tmp_path: Path) -> None:
    made = copied(tmp_path, "day;n\n01/02/2024;1\n03/04/2024;2\n05/06/2024;3\n")
    assert made is not None
    assert "day may have days or months first, and is left as it is" in made[0]
    assert made[1][1] == ["01/02/2024", "1"]


def test_thousands_or_decimals_are_left_and_told(tmp_path: Path) -> None:
    made = copied(tmp_path, "n;sex\n1,234;F\n12;M\n5,678;F\n777;M\n")
    assert made is not None
    assert "n may have decimal commas or thousands, and is left as it is" in made[0]
    assert made[1][1] == ["1,234", "F"]


def test_a_separator_that_nobody_can_tell_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("n;m\n1,234;1,5\n5,678;2,5\n9,012;3,5\n")
    with pytest.raises(SourceError, match="seems to have another separator"):
        init(path, tmp_path / "bursar.toml", copy=True)


def test_other_files_and_a_copy_that_is_there_are_left_alone(tmp_path: Path) -> None:
    assert plain_copy(tmp_path / "nothing.csv", allowed=True) is None
    (tmp_path / "people.parquet").write_bytes(b"PAR1")
    assert plain_copy(tmp_path / "people.parquet", allowed=True) is None
    (tmp_path / "people.plain.csv").write_text("mine")
    with pytest.raises(SourceError, match=r"plain\.csv exists, and is left as it is"):
        copied(tmp_path, EUROPE)
    assert (tmp_path / "people.plain.csv").read_text() == "mine"


def test_the_copy_is_no_more_open_than_the_original(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text(EUROPE)
    path.chmod(0o640)
    found = plain_copy(path, allowed=True)
    assert found is not None
    assert found.path.stat().st_mode & 0o777 == 0o640


def rows(number: int) -> str:
    days = [f"{1 + place % 28:02d}.{1 + place % 12:02d}.2023" for place in range(number)]
    return "price;day;age\n" + "".join(
        f"{place % 97},{place % 10};{day};{place % 60}\n" for place, day in enumerate(days)
    )


def test_a_draft_is_about_the_copy(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text(rows(500))
    made = init(path, tmp_path / "bursar.toml", copy=True)
    assert made.plain is not None
    assert made.config.location == tmp_path / "people.plain.csv"
    assert made.config.table == "people"
    price, day, age = made.config.domain.attributes
    assert isinstance(price, Bins)
    assert isinstance(day, Dates)
    assert isinstance(age, IntegerRange)
    assert day.first == date(2023, 1, 1)


def test_a_draft_that_fails_leaves_no_copy(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("a;b\n1,5;2\n")
    with pytest.raises(Exception, match="no column can be drafted"):
        init(path, tmp_path / "bursar.toml", copy=True)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["people.csv"]


def test_years_first_leave_no_doubt(tmp_path: Path) -> None:
    made = copied(tmp_path, "name;day\n" + "".join(f"a;2024/0{month}/0{month}\n" for month in range(1, 9)))
    assert made is not None
    assert "day has days as 2023/12/31" in made[0]
    assert made[1][1] == ["a", "2024-01-01"]


def test_separators_that_nobody_uses_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain, "SEPARATORS", {})
    assert copied(tmp_path, EUROPE) is None


def test_a_copy_that_cannot_be_finished_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(plain.shutil, "copymode", full)
    with pytest.raises(OSError, match="no space left"):
        copied(tmp_path, EUROPE)
    assert not (tmp_path / "people.plain.csv").exists()


def test_no_second_file_with_the_rows_is_written_unasked(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text(rows(500))
    with pytest.raises(SourceError, match="try: the same with --copy"):
        init(path, tmp_path / "bursar.toml")
    assert [each.name for each in tmp_path.iterdir()] == ["people.csv"]

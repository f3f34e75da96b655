"""source.url: a table that stays in its database."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from bursar.config.section import Section
from bursar.lazy_dataclass import dataclass

EXAMPLE = 'url = "postgresql://reader@db.example.org/clinic"'
SCHEMES = {
    **dict.fromkeys(("postgresql", "postgres"), "public"),
    **dict.fromkeys(("mysql", "mariadb"), ""),
    **dict.fromkeys(("spark", "sc"), "files"),
    "duckdb": "main",
}
"""What a url begins with, and the schema that tables are in where none is named; none: the database of the url."""

TABLE = "{table}"
"""What stands for a table's name in `source.files`, where there are several tables."""

LONGEST_URL = 2000
LONGEST_TIMEOUT = 86_400
SECONDS = 600


@dataclass(frozen=True, kw_only=True)
class SourceUrl:
    """Where the table is. Nothing in it is secret."""

    url: str
    schema: str
    file: Path | None = None  # behind duckdb:
    files: str | None = None  # with Spark: the Parquet files
    password_file: Path | None = None
    seconds: int = SECONDS  # how long one statement may take
    cells: str | None = None  # the schema in which coded counts are kept, with PostgreSQL

    @property
    def user(self) -> str:
        """Who reads, as the url says."""
        return unquote(urlsplit(self.url).username or "")

    @property
    def scheme(self) -> str:
        """The kind of database: what stands before the first colon, in lower case."""
        return self.url.split(":", 1)[0].lower()

    def files_of(self, table: str) -> str:
        """With Spark: the Parquet files of a table."""
        return (self.files or "").replace(TABLE, table)

    @property
    def name(self) -> str:
        """What people call it: the host and the database, or the file."""
        parts = urlsplit(self.url)
        if self.files is not None:
            return self.files
        return self.file.name if self.file is not None else f"{parts.hostname or 'this machine'}{parts.path}"


def source_url(source: Section, home: Path) -> SourceUrl | None:
    """None where a path is given; ConfigError where both are, or a password stands in the url."""
    if "url" not in source:
        for key in ("schema", "files", "password_file", "timeout", "cells"):
            if key in source:
                source.refuse(key, reason=f"source.{key} belongs to a table in a database", hint=EXAMPLE)
        return None
    for key in ("path", "view"):
        if key in source:
            hint = f"{EXAMPLE}, without {key}"
            source.refuse(key, reason=f"source.{key} and source.url do not go together", hint=hint)
    url = source.text("url", EXAMPLE, longest=LONGEST_URL)
    scheme = url.split(":", 1)[0].lower()
    if ":" not in url or scheme not in SCHEMES:
        schemes = ", ".join(SCHEMES)
        source.refuse("url", reason=f"source.url must begin with one of {schemes}, and a colon", hint=EXAMPLE)
    _check_no_password(source, url)
    schema = SCHEMES[scheme] or unquote(urlsplit(url).path.strip("/"))
    if "schema" in source:
        schema = source.text("schema", 'schema = "clinic"')
    if not schema:
        source.refuse("url", reason="source.url names no database", hint='url = "mysql://reader@db.example.org/clinic"')
    file = source.text("password_file", 'password_file = "secret"', 4096) if "password_file" in source else None
    seconds = SECONDS
    if "timeout" in source:
        seconds = source.integer("timeout", "timeout = 600, in seconds", least=1, most=LONGEST_TIMEOUT)
    files = None
    if scheme in ("spark", "sc"):
        files = source.text("files", 'files = "/data/visits/*.parquet"', longest=LONGEST_URL)
    elif "files" in source:
        source.refuse("files", reason="source.files belongs to Spark", hint='url = "sc://spark.example.org"')
    cells = _cells(source, scheme, schema, url) if "cells" in source else None
    secret = None if file is None else home / file
    stored = home / unquote(url.split(":", 1)[1].removeprefix("//")) if scheme == "duckdb" else None
    return SourceUrl(
        url=url, schema=schema, file=stored, files=files, password_file=secret, seconds=seconds, cells=cells
    )


def _cells(source: Section, scheme: str, schema: str, url: str) -> str:
    """The schema of kept cells: not that of the rows, since a table there of the same name is replaced."""
    cells = source.text("cells", 'cells = "kept"')
    if scheme not in ("postgresql", "postgres"):
        source.refuse("cells", reason="source.cells belongs to PostgreSQL", hint=EXAMPLE)
    if cells == schema:
        source.refuse("cells", reason="source.cells is the schema of the rows", hint='cells = "kept"')
    if not urlsplit(url).username:
        source.refuse("url", reason="source.url must name the role that reads source.cells", hint=EXAMPLE)
    return cells


def _check_no_password(source: Section, url: str) -> None:
    try:
        parts = urlsplit(url)
        token = ";token=" in url.lower()  # as Spark Connect takes it
        secret = token or parts.password is not None or {"password", "passfile"} & set(parse_qs(parts.query))
    except ValueError:
        source.refuse("url", reason="source.url cannot be read", hint=EXAMPLE)
    if secret:
        reason = "source.url has a password in it, and everything in a config is public"
        hint = f"{EXAMPLE}, and the password in BURSAR_SOURCE_PASSWORD, or in a password_file of mode 0600"
        source.refuse("url", reason=reason, hint=hint)

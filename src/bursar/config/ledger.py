"""[ledger]: where the budget is kept, if not in a file beside the config."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from bursar.config.section import HOMES, KEYS, Section, shown
from bursar.lazy_dataclass import dataclass

EXAMPLE = 'url = "postgresql://db.example.org/budgets"'
LONGEST_URL = 2000
LONGEST_SCHEMA = 63
"""What PostgreSQL keeps of a name."""


@dataclass(frozen=True, kw_only=True)
class LedgerSettings:
    """Which database keeps the ledger; None: none does, it is a file."""

    url: str | None = None
    schema: str = "bursar"
    key_file: str | None = None  # of the key that secrets are encrypted with; None: ledger.key in the folder
    asynchronous: bool = False  # whether a database is accepted whose fail-over may lose charges

    def lines(self) -> str:
        """What a config says so."""
        if self.url is None:
            return "take out [ledger]"
        return f"[ledger]\nurl = {json.dumps(self.url)}\nschema = {json.dumps(self.schema)}"


def settings_of(to: str, schema: str) -> LedgerSettings:
    """The settings that a URL, or the word file, stands for."""
    if to == "file":
        return LedgerSettings()
    entries = {"ledger": {"url": to, "schema": schema}}
    return ledger_settings(Section(file="", lines={}, entries=entries))


def ledger_settings(top: Section) -> LedgerSettings:
    """The section as it stands; no database is asked."""
    section = top.section("ledger", f"[ledger]\n{EXAMPLE}")
    section.only(KEYS["ledger"], HOMES)
    url = section.text("url", EXAMPLE, longest=LONGEST_URL)
    _check_url(section, url)
    accepted = section.entries.get("asynchronous", False)
    if not isinstance(accepted, bool):
        reason = f"ledger.asynchronous must be true or false, not {shown(accepted)}"
        section.refuse("asynchronous", reason=reason, hint="leave it out, unless you accept that charges may be lost")
    schema = section.text("schema", 'schema = "people"', longest=LONGEST_SCHEMA) if "schema" in section else "bursar"
    key_file = section.text("key_file", 'key_file = "ledger.key"', longest=4096) if "key_file" in section else None
    return LedgerSettings(url=url, schema=schema, key_file=key_file, asynchronous=accepted)


def _check_url(section: Section, url: str) -> None:
    try:
        parts = urlsplit(url)
        secret = parts.password is not None or "password" in parse_qs(parts.query)
    except ValueError:
        section.refuse("url", reason="ledger.url cannot be read", hint=EXAMPLE)
    if parts.scheme not in ("postgresql", "postgres"):
        section.refuse("url", reason="ledger.url must be that of a PostgreSQL database", hint=EXAMPLE)
    if secret:
        reason = "ledger.url has a password in it, and everything in a config is public"
        hint = f"{EXAMPLE}, and the password in the file that PGPASSFILE names, of mode 0600"
        section.refuse("url", reason=reason, hint=hint)


def key_path(settings: LedgerSettings, folder: Path) -> Path:
    """The file of the key, relative to the config's own folder where it is given."""
    return folder / "ledger.key" if settings.key_file is None else folder.parent / settings.key_file

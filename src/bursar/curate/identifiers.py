"""Whether the name of a column says that it holds identifiers: told by its words alone, never by the data.

A name does where its last word is one of IDS, or one of NUMBERS behind a word for somebody or something that gets
numbers: customer_id, Patienten-ID, ID-Nr., client no, Kundennummer; but not number_of_children, nr_rooms, house no.
"""

from __future__ import annotations

import re
import unicodedata

IDS = frozenset({
    "id", "uuid", "guid", "ssn", "key", "identifier", "pid", "uid", "mrn", "nhs", "imei", "iban",
    "idnum", "idno", "idnr", "pidnum", "patid", "ptid", "subjid", "usubjid", "subjectid", "userid", "caseid", "empid",
    "rowid", "rownum", "rowname", "rownames",
})  # fmt: skip
NUMBERS = ("nr", "no", "num", "number", "nummer", "numero")
HOLDERS = (
    "id", "account", "case", "citizen", "client", "contract", "customer", "employee", "insurance", "invoice", "member",
    "membership", "order", "passport", "patient", "person", "personnel", "policy", "staff", "student", "subject",
    "ticket", "user", "akte", "auftrag", "ausweis", "fall", "kd", "klient", "konto", "kund", "mitglied", "personal",
    "rechnung", "steuer", "versicherung", "vertrag",
)  # fmt: skip
"""Who or what has numbers, in English and German, and `id` itself; an ending such as -n, -en or -s may follow."""

_WORD = re.compile(r"[A-Z]+(?![a-zß])|[A-Z]?[a-zß]+")
_NUMBERED = re.compile(rf"(?:{'|'.join(HOLDERS)})(?:e?n|e?s|e)?(?:{'|'.join(NUMBERS)}|id)")


def names_identifiers(name: str) -> bool:
    """Whether a column of this name holds identifiers, if its values look like some."""
    words = words_of(name)
    last_two = ("".join(words[-1:]), "".join(words[-2:]))
    return words[-1:] != [] and (words[-1] in IDS or any(map(_NUMBERED.fullmatch, last_two)))


def words_of(name: str) -> list[str]:
    """The words of a name, in small letters and without accents: customerId and Customer-ID have two, the same."""
    letters = "".join(one for one in unicodedata.normalize("NFKD", name) if not unicodedata.combining(one))
    return [word.casefold() for word in _WORD.findall(letters)]

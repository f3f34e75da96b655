"""TRUSTED. The four verbs, the noise, the accounts, the ledger and the data: everything that privacy rests on."""

import bursar.core.accounting  # noqa: F401  # first: it names all extensions, and these are made of its parts

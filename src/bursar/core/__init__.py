"""TRUSTED. The four verbs, the noise, the accounts, the ledger and the data: everything that privacy rests on."""

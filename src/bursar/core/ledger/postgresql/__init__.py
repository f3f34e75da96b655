"""TRUSTED where it is used. The ledger in PostgreSQL: a connection, a cipher for secrets, and the ledger itself."""

"""Tables that stay in a database server: coded, bounded and counted there; only counts of cells come back."""

"""How wrong an estimate can be: upper bounds on the tails of weighted sums of discrete noise."""

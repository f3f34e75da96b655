"""After a refusal, and only then: the nearest question that works. `suggest.suggest` is the one entry."""

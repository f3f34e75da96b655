"""After a refusal: a question that means the same, or one that says what differs."""

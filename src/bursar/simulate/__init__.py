"""What a policy would mean for its analysts, tried on made-up people: `measures` says how it is judged."""

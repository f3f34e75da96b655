"""Stage 3 of 5: Workload -> Offer. Everything that can answer makes an offer, and the best one wins."""

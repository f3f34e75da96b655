"""Large workloads and synthetic tables: what is measured once, so that millions of questions can be answered after."""

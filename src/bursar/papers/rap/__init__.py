"""RAP (Avent and Korolova, "Pushing the Boundaries of Private, Large-Scale Query Answering"), beyond the engine's."""

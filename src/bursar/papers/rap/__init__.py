"""RAP (Vietri et al., NeurIPS 2022): what the engine does not use itself."""

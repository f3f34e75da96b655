"""Published systems as simulations, for questions by the ten thousand; those to be asked by name are `presets`."""

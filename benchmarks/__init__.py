"""How long each phase takes; no test measures time."""

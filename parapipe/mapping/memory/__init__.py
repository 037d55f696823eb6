"""Orders of operators in which few bytes are alive, and offsets of what is alive in an arena."""

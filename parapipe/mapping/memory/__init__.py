"""Memory of one processor: orders of operators in which few bytes are alive."""

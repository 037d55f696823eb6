"""Small problems: all assignments of operators to processors at once, in arrays, with a proof."""

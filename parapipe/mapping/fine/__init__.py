"""The exact mapper: fine-grained placement and order of operators, with proofs, by CP-SAT."""

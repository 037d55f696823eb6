"""Arm's compiler for the Ethos-U, `ethos-u-vela`: its table of rows, its worker."""

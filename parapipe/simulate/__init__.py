"""Discrete-event replay of frames through a plan."""

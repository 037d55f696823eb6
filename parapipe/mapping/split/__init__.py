"""Splits: operators on several processors at once, each with a share of the output."""

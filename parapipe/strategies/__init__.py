"""Strategies: what decides at run time which task a free processor does next."""

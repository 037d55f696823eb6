"""Frames that take turns on every processor: what period, hand-overs and energy they allow."""

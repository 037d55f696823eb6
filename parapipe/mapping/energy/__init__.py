"""Schedules that take less energy, and how much longer they take."""

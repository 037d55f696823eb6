"""What calibrates the shipped platforms and profiles, and checks of changes; not in the wheel."""

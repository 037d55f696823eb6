"""What calibrates the shipped platforms and profiles; not part of the package."""

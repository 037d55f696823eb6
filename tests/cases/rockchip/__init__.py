"""Stand-ins for Rockchip's two packages: what they are called with, and faults on demand."""

"""What a package adds to parapipe: a mapper, a search, a strategy, an export target, a platform."""

from pathlib import Path

BOARD = Path(__file__).with_name("board.yaml")

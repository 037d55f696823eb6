"""Writes the SHA-256 of each zoo model's file into the package: python -m tools.zoo_digests.

Both digests of a line are of bytes that protobuf writes: of the model without the numbers of its
weights, by which `described` finds the line, and of the whole file, weights made one at a time.
"""

from __future__ import annotations

from hashlib import sha256

from parapipe.files.atomic import write_atomically
from parapipe.zoo.emitter import digest, without_weights
from parapipe.zoo.registry import DIGESTS, build, examples, serialize


def line(name: str) -> str:
    """Return the line of a model."""
    with without_weights() as left_out:
        model = build(name)
    return f"{name},{sha256(serialize(model)).hexdigest()},{digest(model, left_out)}"


if __name__ == "__main__":
    lines = ["model,without_numbers,file", *map(line, examples())]
    write_atomically(DIGESTS, ("\n".join(lines) + "\n").encode())

"""A front with replicas: three identical NPUs beside other processors, at nominal costs."""

from __future__ import annotations

import random
from pathlib import Path

import onnx

import parapipe
from tests.cases.random_networks import network

ONE_STAGE, TWO_STAGES = 7, 11
"""Seeds of fronts whose replicas run the whole network, and a part of it."""


def replicated_front(folder: Path, seed: int) -> parapipe.ParetoFront:
    """Map a random network onto an RK3588 in half precision."""
    board, model = folder / "board.yaml", folder / "network.onnx"
    board.write_text(parapipe.new_platform(chip="rk3588").text, encoding="utf-8")
    onnx.save(network(random.Random(seed)), model)
    options = {"precision": "float16", "interleave": "none", "resolution": 0.0, "draws": 40}
    return parapipe.map(model, board, cache=False, jobs=1, **options)

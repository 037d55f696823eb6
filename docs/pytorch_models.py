"""Models of torchvision, timm and transformers, with random weights, as PyTorch exports them.

    python docs/pytorch_models.py FOLDER [MODEL ...]

writes FOLDER/MODEL.onnx, and beside it MODEL.json with what PyTorch counts of it, for each model
that is not there yet. It runs in an environment with PyTorch, and needs nothing of parapipe; who
imports it needs no PyTorch. Multiply-accumulates are half of what `FlopCounterMode` counts of one
run, attention in plain products. Models of transformers have the widths below.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class PyTorchModel:
    """A model of a package.

    Parameters
    ----------
    what
        What it is for.
    name
        What the package calls it: of transformers, the type of its configuration.
    settings
        Of that configuration, beside those of `SMALL`.
    """

    what: str
    package: str
    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)


_CLASSES, _TEXT, _SOUND = "image classification", "language", "speech"
_DECODER, _SEGMENTS = "language model", "segmentation"
SMALL = {
    "hidden_size": 256, "intermediate_size": 1024, "num_hidden_layers": 4,
    "num_attention_heads": 4, "vocab_size": 4096,
}  # fmt: skip
_GROUPED = {"num_key_value_heads": 2}
TOKENS = 64
MODELS = (
    PyTorchModel(_CLASSES, "torchvision", "resnet18"),
    PyTorchModel(_CLASSES, "torchvision", "mobilenet_v3_small"),
    PyTorchModel(_CLASSES, "torchvision", "shufflenet_v2_x1_0"),
    PyTorchModel(_CLASSES, "torchvision", "efficientnet_b0"),
    PyTorchModel(_CLASSES, "torchvision", "regnet_y_400mf"),
    PyTorchModel(_CLASSES, "torchvision", "mnasnet1_0"),
    PyTorchModel(_CLASSES, "torchvision", "densenet121"),
    PyTorchModel(_CLASSES, "torchvision", "convnext_tiny"),
    PyTorchModel(_CLASSES, "torchvision", "swin_t"),
    PyTorchModel(_CLASSES, "torchvision", "googlenet"),
    PyTorchModel(_SEGMENTS, "torchvision", "lraspp_mobilenet_v3_large"),
    PyTorchModel(_SEGMENTS, "torchvision", "deeplabv3_mobilenet_v3_large"),
    PyTorchModel("optical flow", "torchvision", "raft_small"),
    PyTorchModel(_CLASSES, "timm", "ghostnet_100"),
    PyTorchModel(_CLASSES, "timm", "mobilevit_xs"),
    PyTorchModel(_CLASSES, "timm", "edgenext_x_small"),
    PyTorchModel(_CLASSES, "timm", "efficientformer_l1"),
    PyTorchModel(_CLASSES, "timm", "levit_128s"),
    PyTorchModel(_CLASSES, "timm", "deit_tiny_patch16_224"),
    PyTorchModel(_CLASSES, "timm", "poolformer_s12"),
    PyTorchModel(_CLASSES, "timm", "mixer_s32_224"),
    PyTorchModel(_CLASSES, "timm", "resmlp_12_224"),
    PyTorchModel(_CLASSES, "timm", "fastvit_t8"),
    PyTorchModel(_CLASSES, "timm", "xcit_nano_12_p16_224"),
    PyTorchModel(_CLASSES, "timm", "pvt_v2_b0"),
    PyTorchModel(_CLASSES, "timm", "mobilenetv4_conv_small"),
    PyTorchModel(_CLASSES, "timm", "hrnet_w18_small"),
    PyTorchModel(_TEXT, "transformers", "bert"),
    PyTorchModel(
        _TEXT, "transformers", "distilbert",
        {"dim": 256, "hidden_dim": 1024, "n_layers": 4, "n_heads": 4},
    ),
    PyTorchModel(_TEXT, "transformers", "albert", {"embedding_size": 128}),
    PyTorchModel(_TEXT, "transformers", "electra", {"embedding_size": 128}),
    PyTorchModel(
        _DECODER, "transformers", "gpt2", {"n_embd": 256, "n_layer": 4, "n_head": 4}
    ),
    PyTorchModel(_DECODER, "transformers", "opt", {"ffn_dim": 1024, "word_embed_proj_dim": 256}),
    PyTorchModel(_DECODER, "transformers", "gpt_neox"),
    PyTorchModel(_DECODER, "transformers", "llama", _GROUPED),
    PyTorchModel(_DECODER, "transformers", "qwen2", _GROUPED),
    PyTorchModel(_DECODER, "transformers", "mistral", _GROUPED),
    PyTorchModel(_CLASSES, "transformers", "dinov2", {"image_size": 224}),
    PyTorchModel(_CLASSES, "transformers", "segformer"),
    PyTorchModel(
        _SOUND, "transformers", "wav2vec2",
    ),
)  # fmt: skip
PICTURES = frozenset({"dinov2", "segformer"})


def write(model: PyTorchModel, folder: Path) -> None:
    """Export a model, and write beside it what PyTorch counts."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    torch.manual_seed(0)
    module, inputs = _BUILDERS[model.package](model)
    module.eval()
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), counter:
        module(*inputs)
    path = folder / f"{model.name}.onnx"
    torch.onnx.export(module, inputs, str(path), dynamo=True, external_data=False, verbose=False)
    packages = {name: version(name) for name in ("torch", "onnxscript", model.package)}
    found = {
        "macs": counter.get_total_flops() // 2,
        "weights": sum(each.numel() for each in module.parameters()),
        "packages": packages,
    }
    path.with_suffix(".json").write_text(json.dumps(found), encoding="utf-8")


def _torchvision(model: PyTorchModel) -> tuple[Any, tuple[Any, ...]]:
    import torch
    from torchvision.models import get_model

    options = {"weights_backbone": None} if model.what == _SEGMENTS else {}
    module = get_model(model.name, weights=None, **options)
    if model.name == "raft_small":
        pictures = tuple(torch.randn(1, 3, 128, 128) for _ in range(2))
        return _last(module, num_flow_updates=4), pictures
    picture = (torch.randn(1, 3, 224, 224),)
    return (_first(module) if model.what == _SEGMENTS else module), picture


def _timm(model: PyTorchModel) -> tuple[Any, tuple[Any, ...]]:
    import timm
    import torch

    module = timm.create_model(model.name, pretrained=False)
    return module, (torch.randn(1, *module.default_cfg["input_size"]),)


def _transformers(model: PyTorchModel) -> tuple[Any, tuple[Any, ...]]:
    import torch
    from transformers import AutoConfig, AutoModel, AutoModelForCausalLM

    sizes = {} if model.name == "segformer" else SMALL
    config = AutoConfig.for_model(model.name, **{**sizes, **model.settings})
    kind = AutoModelForCausalLM if model.what == _DECODER else AutoModel
    module = kind.from_config(config, attn_implementation="eager")
    if model.what == _SOUND:
        inputs = (torch.randn(1, 16000),)
    elif model.name in PICTURES:
        inputs = (torch.randn(1, 3, 224, 224),)
    else:
        inputs = (torch.randint(0, SMALL["vocab_size"], (1, TOKENS)),)
    options = {"use_cache": False} if model.what == _DECODER else {}
    return _first(module, **options), inputs


def _first(module: Any, **options: object) -> Any:  # noqa: ANN401 - modules of PyTorch
    """Return a module whose only result is the first one of another."""
    return _wrapped(module, lambda results: next(iter(results.values())), options)


def _last(module: Any, **options: object) -> Any:  # noqa: ANN401
    """Return a module whose only result is the last one of another."""
    return _wrapped(module, lambda results: results[-1], options)


def _wrapped(
    module: Any,  # noqa: ANN401
    chosen: Callable[[Any], object],
    options: Mapping[str, object],
) -> Any:  # noqa: ANN401
    import torch

    class Wrapped(torch.nn.Module):  # type: ignore[misc]  # PyTorch is not there
        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, *inputs: object) -> object:
            return chosen(self.module(*inputs, **options))

    return Wrapped()


_BUILDERS: Mapping[str, Callable[[PyTorchModel], tuple[Any, tuple[Any, ...]]]] = {
    "torchvision": _torchvision,
    "timm": _timm,
    "transformers": _transformers,
}


if __name__ == "__main__":
    folder, *chosen = sys.argv[1:]
    for each in MODELS:
        if (not chosen or each.name in chosen) and not Path(folder, f"{each.name}.json").exists():
            write(each, Path(folder))
            sys.stdout.write(f"{each.name}\n")
            sys.stdout.flush()

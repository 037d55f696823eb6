"""Writes the models of tests/cases/third_party: python -m tools.third_party_models [NAME ...].

Each is a network of other people's packages, or one of torch_networks.py, with random weights and
small widths, as PyTorch's exporter writes it. The files keep the structure only: a ConstantOfShape
node stands in for each weight of more than a few numbers. SOURCES.md there says which packages and
versions were used; installing these is all that is needed. Nothing is downloaded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import diffusers
import numpy as np
import onnx
import torch
import transformers as tr
from onnx import helper, numpy_helper
from transformers.models.sam.modeling_sam import SamVisionModel

from tools.torch_networks import ExpertDecoder, Flow, Taken

FOLDER = Path(__file__).parents[1] / "tests" / "cases" / "third_party"
PACKAGES = ("torch", "onnxscript", "transformers", "diffusers")
MOST_NUMBERS = 16  # of a weight that stays
Exported = tuple[torch.nn.Module, tuple[torch.Tensor, ...], Mapping[str, torch.Tensor]]

EAGER: Mapping[str, Any] = {"attn_implementation": "eager"}  # the exporter takes no other one
DECODER: Mapping[str, Any] = {
    "vocab_size": 1000, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
    "max_position_embeddings": 128, **EAGER,
}  # fmt: skip


def image(side: int) -> torch.Tensor:
    """Return a random image."""
    return torch.randn(1, 3, side, side)


def tokens(count: int) -> torch.Tensor:
    """Return random tokens."""
    return torch.randint(0, 1000, (1, count))


def swin() -> Exported:
    """Return windows that are shifted, in three stages."""
    config = tr.SwinConfig(
        image_size=64, depths=[2, 2, 2], num_heads=[2, 4, 8], embed_dim=32, window_size=4, **EAGER
    )
    return tr.SwinForImageClassification(config), (image(64),), {}


def deit() -> Exported:
    """Return a vision transformer."""
    config = tr.DeiTConfig(
        hidden_size=96, num_hidden_layers=4, num_attention_heads=3, intermediate_size=384,
        image_size=64, patch_size=8, **EAGER,
    )  # fmt: skip
    return tr.DeiTForImageClassification(config), (image(64),), {}


def whisper() -> Exported:
    """Return an encoder of speech, and a decoder that reads it."""
    config = tr.WhisperConfig(
        vocab_size=1000, d_model=64, encoder_layers=2, decoder_layers=2, use_cache=False,
        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=256,
        decoder_ffn_dim=256, max_source_positions=100, max_target_positions=64, pad_token_id=0,
        bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, **EAGER,
    )  # fmt: skip
    feeds = {"input_features": torch.randn(1, 80, 200), "decoder_input_ids": tokens(8)}
    return tr.WhisperForConditionalGeneration(config), (), feeds


def detr() -> Exported:
    """Return a detector: a ResNet, an encoder, and a decoder of queries."""
    backbone = tr.ResNetConfig(
        embedding_size=16, hidden_sizes=[16, 32, 64, 128], depths=[1, 1, 1, 1], layer_type="basic",
        out_features=["stage4"],
    )  # fmt: skip
    config = tr.DetrConfig(
        use_timm_backbone=False, backbone_config=backbone, num_queries=20, d_model=64,
        encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=128, decoder_ffn_dim=128, **EAGER,
    )  # fmt: skip
    mask = torch.ones(1, 128, 128, dtype=torch.int64)
    return tr.DetrForObjectDetection(config), (), {"pixel_values": image(128), "pixel_mask": mask}


def sam_encoder() -> Exported:
    """Return the image encoder of Segment Anything."""
    config = tr.SamVisionConfig(
        hidden_size=64, output_channels=32, num_hidden_layers=4, num_attention_heads=2,
        image_size=128, window_size=4, global_attn_indexes=[1, 3], mlp_dim=256, **EAGER,
    )  # fmt: skip
    return SamVisionModel(config), (image(128),), {}


def sam_decoder() -> Exported:
    """Return its decoder of masks, from an image's embedding and points."""
    vision = tr.SamVisionConfig(
        hidden_size=64, output_channels=256, num_hidden_layers=1, num_attention_heads=2,
        image_size=128, window_size=4, global_attn_indexes=[0], mlp_dim=128,
    )  # fmt: skip
    config = tr.SamConfig(
        vision_config=vision.to_dict(),
        prompt_encoder_config=tr.SamPromptEncoderConfig(
            image_size=128, mask_input_channels=8
        ).to_dict(),
        mask_decoder_config=tr.SamMaskDecoderConfig(
            mlp_dim=128, num_attention_heads=4, iou_head_hidden_dim=32
        ).to_dict(),
        **EAGER,
    )

    def masks(model: torch.nn.Module, *given: torch.Tensor) -> Any:  # noqa: ANN401
        names = ("image_embeddings", "input_points", "input_labels")
        made = model(**dict(zip(names, given, strict=True)))
        return made.pred_masks, made.iou_scores

    points, labels = torch.rand(1, 1, 2, 2) * 128, torch.ones(1, 1, 2, dtype=torch.int64)
    return Taken(tr.SamModel(config), masks), (torch.randn(1, 256, 8, 8), points, labels), {}


def t5() -> Exported:
    """Return an encoder and a decoder of text."""
    config = tr.T5Config(
        vocab_size=1000, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_decoder_layers=2,
        num_heads=4, use_cache=False, pad_token_id=0, decoder_start_token_id=0, **EAGER,
    )  # fmt: skip
    feeds = {"input_ids": tokens(16), "decoder_input_ids": tokens(8)}
    return tr.T5ForConditionalGeneration(config), (), feeds


def unet() -> Exported:
    """Return the U-Net of a diffusion model, with attention to a text."""
    model = diffusers.UNet2DConditionModel(
        sample_size=16, layers_per_block=1, block_out_channels=(32, 64), cross_attention_dim=32,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), attention_head_dim=4,
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"), norm_num_groups=8,
    )  # fmt: skip
    feeds = (torch.randn(1, 4, 16, 16), torch.tensor([5]), torch.randn(1, 12, 32))
    return Taken(model, lambda unet, *given: unet(*given, return_dict=False)[0]), feeds, {}


def qwen2() -> Exported:
    """Return one step of a decoder, with a cache of keys and values."""
    config = tr.Qwen2Config(intermediate_size=160, num_hidden_layers=3, **DECODER)
    return _step(tr.Qwen2ForCausalLM(config), 3)


def mixtral() -> Exported:
    """Return one step of a decoder that mixes experts, which are chosen by Gather."""
    config = tr.MixtralConfig(
        intermediate_size=96, num_hidden_layers=2, experts_implementation="batched_mm", **DECODER
    )
    return _step(tr.MixtralForCausalLM(config), 2)


def experts() -> Exported:
    """Return a decoder that mixes experts, all of which are computed."""
    return ExpertDecoder(), (tokens(4), *(torch.randn(1, 4, 24, 16) for _ in range(6))), {}


def raft() -> Exported:
    """Return optical flow that is updated four times."""
    return Flow(), (torch.randn(1, 3, 128, 160), torch.randn(1, 3, 128, 160)), {}


def mamba() -> Exported:
    """Return a model of selective state spaces, over a few tokens."""
    config = tr.MambaConfig(
        vocab_size=1000, hidden_size=32, state_size=8, num_hidden_layers=2, conv_kernel=4,
        time_step_rank=4, use_cache=False,
    )  # fmt: skip
    model = tr.MambaForCausalLM(config)
    return Taken(model, lambda mamba, given: mamba(input_ids=given).logits), (tokens(8),), {}


def convnext() -> Exported:
    """Return a convolutional network of wide kernels."""
    config = tr.ConvNextConfig(depths=[1, 1, 2, 1], hidden_sizes=[16, 32, 64, 128], image_size=64)
    return tr.ConvNextForImageClassification(config), (image(64),), {}


NETWORKS: Mapping[str, Callable[[], Exported]] = {
    each.__name__: each
    for each in (
        swin, deit, whisper, detr, sam_encoder, sam_decoder, t5, unet, qwen2, mixtral, experts,
        raft, mamba, convnext,
    )
}  # fmt: skip


def _step(model: torch.nn.Module, layers: int) -> Exported:
    def step(model: torch.nn.Module, *given: torch.Tensor) -> Any:  # noqa: ANN401
        ids, places, *before = given
        cache = tr.DynamicCache()
        for layer in range(layers):
            cache.update(*before[2 * layer : 2 * layer + 2], layer)
        made = model(input_ids=ids, position_ids=places, past_key_values=cache, use_cache=True)
        pairs = ((layer.keys, layer.values) for layer in made.past_key_values.layers)
        return (made.logits, *(each for pair in pairs for each in pair))

    past = (torch.randn(1, 2, 24, 16) for _ in range(2 * layers))
    return Taken(model, step), (tokens(1), torch.tensor([[24]]), *past), {}


def exported(name: str) -> onnx.ModelProto:
    """Return a network as the exporter writes it, with random weights."""
    torch.manual_seed(0)
    model, given, named = NETWORKS[name]()
    program = torch.onnx.export(model.eval(), given, kwargs=named, dynamo=True, verbose=False)
    made: onnx.ModelProto = program.model_proto
    return made


def weightless(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the structure of a model: nodes make its weights, and nothing says where from."""
    graph = model.graph
    kept, extents, made = [], dict[str, onnx.TensorProto](), []
    for tensor in graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.dtype.kind != "f" or array.size <= MOST_NUMBERS:
            kept.append(numpy_helper.from_array(array, tensor.name))
            continue
        shape = f"shape_{'x'.join(map(str, array.shape))}"
        extents[shape] = numpy_helper.from_array(np.array(array.shape, np.int64), shape)
        zero = numpy_helper.from_array(np.zeros(1, array.dtype))
        made.append(helper.make_node("ConstantOfShape", [shape], [tensor.name], value=zero))
    found = helper.make_graph(
        [*made, *graph.node], graph.name, graph.input, graph.output, [*kept, *extents.values()]
    )
    for each in (*found.node, *found.input, *found.output):
        del each.metadata_props[:]
        each.doc_string = ""
    return helper.make_model(
        found, opset_imports=model.opset_import, ir_version=model.ir_version,
        producer_name=model.producer_name, producer_version=model.producer_version,
    )  # fmt: skip


def sources() -> Iterator[str]:
    """Yield the lines that say where the models come from."""
    yield "# Where these models come from\n"
    packages = ", ".join(f"{each} {version(each)}" for each in PACKAGES)
    yield f"Written by `python -m tools.third_party_models`, with {packages}.\n"
    yield (
        "Each network is built from its configuration with random weights and exported by\n"
        "`torch.onnx.export(dynamo=True)`. Of weights, only the shapes are kept. transformers and\n"
        "diffusers are under the Apache licence 2.0; `experts` and `raft` are written for this.\n"
    )
    yield "| file | network | made by |\n|---|---|---|"
    for name, build in NETWORKS.items():
        model = build()[0]
        kind = type(model.model if isinstance(model, Taken) else model)
        package = kind.__module__.partition(".")[0]
        made_by = "tools/torch_networks.py" if package == "tools" else package
        yield f"| `{name}.onnx` | {kind.__name__} | {made_by} |"


def main() -> None:
    """Write the models that are named, or all."""
    for name in sys.argv[1:] or NETWORKS:
        onnx.save(weightless(exported(name)), FOLDER / f"{name}.onnx")
    (FOLDER / "SOURCES.md").write_text("\n".join(sources()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Small operator graphs built by hand, for tests that need no model file."""

from math import prod

from parapipe.graph.operator_graph import (
    Constant,
    ModelSource,
    Operator,
    OperatorGraph,
    Tensor,
    Work,
)
from parapipe.platform.platform import Platform

SOURCE = ModelSource("by hand", "0" * 64)


class GraphBuilder:
    """Collects operators one after the other; every tensor is float32 unless said otherwise."""

    def __init__(self, **inputs):
        self.tensors = {name: Tensor(name, shape, "float32") for name, shape in inputs.items()}
        self.inputs = tuple(inputs)
        self.constants = {}
        self.operators = []

    def constant(self, name, shape):
        self.constants[name] = Constant(name, shape, "float32")
        return name

    def add(self, kind, inputs, shape, macs=0, *, domain="", modelled=True, **attributes):
        return self.append(
            self.operator(kind, inputs, shape, macs, domain=domain, modelled=modelled, **attributes)
        )

    def append(self, operator):
        self.operators.append(operator)
        return operator.id

    def operator(self, kind, inputs, shape, macs=0, *, domain="", modelled=True, **attributes):
        name = f"{kind.lower()}_{len(self.tensors)}"
        output = Tensor(name, shape, "float32")
        known = {**self.tensors, **self.constants}
        self.tensors[name] = output
        view = kind in ("Reshape", "Flatten", "Squeeze", "Unsqueeze")
        read = 0 if view else sum(known[n].size_bytes for n in set(inputs) if n in known)
        work = Work(macs, read, 0 if view else output.size_bytes, modelled)
        return Operator(
            id=name, name=name, domain=domain, type=kind, attributes=attributes,
            inputs=tuple(inputs), outputs=(name,), work=work, members=(name,),
        )  # fmt: skip

    def conv(self, read, channels, kernel=(3, 3), stride=1, group=1, **attributes):
        """Add a convolution padded to keep the extent (divided by the stride)."""
        batch, depth, *extents = self.tensors[read].shape
        weights = self.constant(f"weights_{len(self.tensors)}", (channels, depth // group, *kernel))
        shape = (batch, channels, *(-(-extent // stride) for extent in extents))
        macs = prod(shape) * prod(kernel) * depth // group
        return self.add(
            "Conv", [read, weights], shape, macs,
            kernel_shape=tuple(kernel), strides=(stride, stride), group=group, **attributes,
        )  # fmt: skip

    def graph(self, *outputs):
        return OperatorGraph(
            source=SOURCE,
            granularity="onnx",
            operators=tuple(self.operators),
            tensors=self.tensors,
            constants=self.constants,
            inputs=self.inputs,
            outputs=outputs or (self.operators[-1].id,),
        )


def processor(name, **changes):
    """Return a processor as a platform file has it: 1 GMAC/s, 1 GB/s, 10 µs to launch, 2 W."""
    return {
        "name": name,
        "kind": "cpu",
        "backend": "nominal",
        "cores": [0] if name == "big" else [1],
        "source": "guess",
        "data_types": ["float32"],
        "clock": {
            "source": "guess",
            "default_frequency_hz": 1e9,
            "points": [{"frequency_hz": 1e9, "voltage_v": 1.0}],
        },
        "launch": {"source": "guess", "overhead_s": 1e-5},
        "peak": {"source": "guess", "macs_per_s": {"float32": 1e9}},
        "memory": {"source": "guess", "bandwidth_bytes_per_s": 1e9},
        "power": {
            "source": "guess",
            "alpha_w_per_v2_hz": 2e-9,
            "beta_w_per_v": 0.25,
            "utilisation": {"default": 1.0, "elementwise": 0.5},
        },
        "input": {"source": "guess", "latency_s": 0.01, "bandwidth_bytes_per_s": 1e9},
        "output": {"source": "guess", "latency_s": 0.002},
        **changes,
    }


def platform(*processors):
    """Return a platform of the given processors; `big` and `little` by default."""
    processors = processors or (processor("big"), processor("little"))
    names = [p["name"] for p in processors]
    return Platform.model_validate(
        {
            "schema": "parapipe/platform/1",
            "name": "by-hand",
            "board": {"source": "guess", "idle_power_w": 2.0},
            "memory": {"source": "guess", "bandwidth_bytes_per_s": 1e10},
            "processors": list(processors),
            "links": [
                {
                    "from": one, "to": other, "source": "guess",
                    "latency_s": 1e-4, "bandwidth_bytes_per_s": 1e9,
                }
                for one in names for other in names if one != other
            ],
            "sources": {"guess": {"provenance": "nominal", "title": "made up"}},
        }
    )  # fmt: skip

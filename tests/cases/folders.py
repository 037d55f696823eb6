"""Folders written by hand, for the runner with a stub in the library's place.

The stub gives for any operator, element by element, 1 + the sum over its inputs k of (k + 1) / 2 *
input k, taken round and round.
"""

import json
from dataclasses import dataclass, field

import numpy as np

FRAMES = 3


@dataclass
class Network:
    """Operators of one output each, and the processor that each stands on."""

    shapes: dict
    operators: list
    places: dict
    stages: list
    outputs: list
    attributes: dict = field(default_factory=dict)

    def transfers(self):
        """What goes from one processor to another: tensor, from, to."""
        return sorted(
            {
                (tensor, self.places[tensor], self.places[name])
                for name, _, inputs in self.operators
                for tensor in inputs
                if self.places.get(tensor, self.places[name]) != self.places[name]
            }
        )

    def document(self, *, backend="stub", depth=2):
        """The plan."""
        made = {name for name, _, _ in self.operators}
        order = [name for name, _, _ in self.operators]
        used = [name for stage in self.stages for name in stage]
        return {
            "schema": "parapipe/armcl/1",
            "model": {"name": "hand-made", "sha256": "0" * 64},
            "platform": "board",
            "weights": {"file": "weights.bin", "size_bytes": 64},
            "inputs": [name for name in self.shapes if name not in made and name != "w"],
            "outputs": self.outputs,
            "tensors": {
                name: {"shape": shape, "dtype": "float32"} | ({"offset": 0} if name == "w" else {})
                for name, shape in self.shapes.items()
            },
            "operators": [
                {
                    "id": name,
                    "type": kind,
                    "inputs": inputs,
                    "outputs": [name],
                    "attributes": self.attributes.get(kind, {}),
                }
                for name, kind, inputs in self.operators
            ],
            "processors": [
                {"name": name, "backend": backend, "cores": [], "threads": 1} for name in used
            ],
            "stages": [
                {
                    "index": index,
                    "processors": [
                        {"name": name, "operators": [v for v in order if self.places[v] == name]}
                        for name in stage
                    ],
                }
                for index, stage in enumerate(self.stages)
            ],
            "transfers": [
                {"tensor": tensor, "from": source, "to": target, "queue_depth": depth}
                for tensor, source, target in self.transfers()
            ],
        }

    def write(self, folder, **options):
        """Write plan, weights, frames and what the stub makes of them."""
        document = self.document(**options)
        weights = np.arange(16, dtype="<f4") / 16
        frames = [
            {
                name: np.random.default_rng((seed, at)).uniform(-1, 1, self.shapes[name])
                for at, name in enumerate(document["inputs"])
            }
            for seed in range(FRAMES)
        ]
        write_document(folder, document)
        (folder / "weights.bin").write_bytes(weights.tobytes())
        fed = [
            frame[name].astype("<f4").tobytes() for frame in frames for name in document["inputs"]
        ]
        (folder / "input.bin").write_bytes(b"".join(fed))
        made = [values for frame in frames for values in self._made(frame, weights)]
        (folder / "expected.bin").write_bytes(b"".join(v.astype("<f4").tobytes() for v in made))
        return folder

    def _made(self, frame, weights):
        values = {name: value.astype("<f4").ravel() for name, value in frame.items()}
        if "w" in self.shapes:
            values["w"] = weights[: int(np.prod(self.shapes["w"]))]
        for name, _, inputs in self.operators:
            total = np.ones(int(np.prod(self.shapes[name])), "<f4")
            for k, tensor in enumerate(inputs):
                total += np.float32((k + 1) / 2) * np.resize(values[tensor], total.size)
            values[name] = total
        return [values[name] for name in self.outputs]


def write_document(folder, document):
    """Write the plan alone."""
    (folder / "plan.json").write_text(json.dumps(document))


POOL = {"kernel_shape": [3, 3], "strides": [1, 1], "pads": [1, 1, 1, 1], "ceil_mode": 0}


def diamond():
    """Two stages; in the second, two processors work on the two branches of a frame."""
    shape = [1, 2, 4, 4]
    names = ("x", "stem", "left", "right", "side", "join")
    return Network(
        shapes=dict.fromkeys(names, shape) | {"w": [2, 1, 1]},
        operators=[
            ("stem", "Mul", ["x", "w"]),
            ("left", "MaxPool", ["stem"]),
            ("right", "Sigmoid", ["stem"]),
            ("side", "Neg", ["left"]),
            ("join", "Add", ["right", "left"]),
        ],
        places={"stem": "one", "left": "two", "side": "two", "right": "three", "join": "three"},
        stages=[["one"], ["two", "three"]],
        outputs=["join", "side"],
        attributes={"MaxPool": POOL},
    )


def random_network(seed):
    """Operators at random, on one to four processors at random."""
    rng = np.random.default_rng(seed)
    shape = [1, 2, 3, 4]
    processors = [f"p{i}" for i in range(rng.integers(1, 5))]
    operators = []
    for at in range(int(rng.integers(len(processors), 24))):
        known = ["x", *(name for name, _, _ in operators)]
        kind = str(rng.choice(["Add", "Relu", "MaxPool", "Mul"]))
        count = 2 if kind in ("Add", "Mul") else 1
        operators.append((f"v{at}", kind, [str(n) for n in rng.choice(known[-6:], count)]))
    places = {
        name: processors[at] if at < len(processors) else str(rng.choice(processors))
        for at, (name, _, _) in enumerate(operators)
    }
    read = {tensor for _, _, inputs in operators for tensor in inputs}
    unread = [name for name, _, _ in operators if name not in read]
    return Network(
        shapes=dict.fromkeys(("x", *(name for name, _, _ in operators)), shape),
        operators=operators,
        places=places,
        stages=[processors],
        outputs=unread,
        attributes={"MaxPool": POOL},
    )

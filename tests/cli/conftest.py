"""Small models and a way to run commands in this process."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from parapipe.cli.command_line import run


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """The one line of a command that could not do its work; nothing else was printed."""
        assert self.code == 1, (self.out, self.err)
        assert self.out == ""
        (line,) = self.err.splitlines()
        assert "mistake in parapipe" not in line
        return line


@pytest.fixture
def parapipe(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch):
    """Run a command and return how it ended."""
    monkeypatch.delenv("PARAPIPE_DEBUG", raising=False)

    def command(*arguments: object) -> Ended:
        code = run([str(argument) for argument in arguments])
        return Ended(code, *capsys.readouterr())

    return command


@pytest.fixture
def small_model(tmp_path: Path) -> Callable[..., Path]:
    """Write a chain of operators over an input `data` of the given shape."""

    def write(*types: str, shape: tuple[int | str, ...] = (1, 8, 16, 16)) -> Path:
        types = types or ("Relu", "Sigmoid", "Tanh")
        names = ["data", *(f"t{i}" for i in range(len(types)))]
        nodes = [
            helper.make_node(kind, [names[i]], [names[i + 1]], name=f"node{i}")
            for i, kind in enumerate(types)
        ]
        graph = helper.make_graph(
            nodes,
            "small",
            [helper.make_tensor_value_info("data", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info(names[-1], TensorProto.FLOAT, shape)],
        )
        path = tmp_path / "small.onnx"
        opset = [helper.make_opsetid("", 17)]
        onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)
        return path

    return write

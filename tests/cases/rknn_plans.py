"""Plans with NPUs whose segments Rockchip's compiler compiles, and where its stand-ins are."""

import json
import sys
from pathlib import Path

from parapipe.plan.schema import Plan
from tests.cases.split_models import MODELS, placed_plan, written

STANDS_IN = Path(__file__).parent / "rockchip"
LAUNCHER = """
import runpy, sys
sys.path.insert(0, {stands_in!r})
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def toolkit(folder):
    """Write a Python that has the stand-in of the compiler; return its path."""
    launcher, python = folder / "launcher.py", folder / "python"
    launcher.write_text(LAUNCHER.format(stands_in=str(STANDS_IN)))
    python.write_text(f'#!/bin/sh\nshift\nexec {sys.executable} {launcher} "$@"\n')
    python.chmod(0o755)
    return python


def rknn_plan(folder, *, name="folded", target="rk3588", place=None):
    """A model and a plan of it on big, npu0 and npu1; operators in three stages if not said."""
    path = written(MODELS[name](), folder)
    place = place or (lambda v, count: (3 * v // count,) * 2)
    text = placed_plan(path, place).to_bytes().decode()
    document = json.loads(text.replace('"little"', '"npu0"').replace('"gpu"', '"npu1"'))
    for each in document["processors"]:
        if each["name"] != "big":
            each |= {"kind": "npu", "cores": [], "backend": "rknn"}
            each["compiler"] = {"name": "rknn", "target": target}
    return Plan.model_validate_json(json.dumps(document)), path

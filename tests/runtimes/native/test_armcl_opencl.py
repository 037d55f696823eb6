"""The OpenCL back end, on an emulated CPU in the GPU's place: make test-armcl-opencl."""

import os
from pathlib import Path

import numpy as np
import pytest

from tests.cases.armcl_cases import inception, write_case
from tests.cases.runner import Runner, on_this_machine

POCL = os.environ.get("PARAPIPE_ARMCL_POCL")


@pytest.mark.skipif(not POCL, reason="compiles kernels for minutes: make test-armcl-opencl")
@pytest.mark.parametrize("arrangement", ["pipe-gpu", "hybrid-gpu", "para-gpu"])
def test_clusters_and_gpu_work_on_one_network(arm, tmp_path, arrangement):
    pocl = Runner((str(Path(POCL).absolute() / "run"), arm.command[-1]), (), 3600)
    folder = tmp_path / "inception"
    write_case(inception(), folder, frames=3, arrangement=arrangement)
    report, made, wanted = pocl.outputs(
        *(folder, "--frames", 6, "--check", folder / "expected.bin", *on_this_machine(folder))
    )
    assert np.abs(made - wanted).max() <= 1e-5 * np.abs(wanted).max()
    assert report["agrees"]
    assert report["in_order"]
    assert report["shared_transfers"] > 0


def test_a_runner_for_a_gpu_says_what_is_missing_where_there_is_none(arm, tmp_path):
    folder = tmp_path / "inception"
    write_case(inception(), folder, arrangement="gpu-alone")
    done = arm.run(folder)
    assert done.returncode == 1
    # The library says first which files it looked for.
    last = done.stderr.splitlines()[-1]
    assert last.endswith("there is no libOpenCL.so here; install the GPU's driver")

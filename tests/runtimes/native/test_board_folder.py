"""The runner on a board: XNNPACK on arm64, and a folder without a compiler, by the README."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.cases.armcl_cases import inception, separable, write_case
from tests.cases.runner import assert_near, on_one_core_each
from tests.runtimes.native.conftest import BUILD

README = (Path(__file__).parents[3] / "runtimes/native/README.md").read_text(encoding="utf-8")
OF_THE_IMAGE = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1"}
LOADER = "ld-linux-aarch64.so.1"


def commands(machine, heading):
    """What a section of the README says to type on the desk or the board."""
    section = README.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(rf"^{machine}\$ (.*)$", section, re.MULTILINE)


def needed_by(file):
    """The libraries that a program or library names."""
    words = ["readelf", "--dynamic", "--wide", str(file)]
    told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", told))


@pytest.mark.parametrize("network", [inception, separable])
def test_networks_compute_with_xnnpack_on_arm64(arm, tmp_path, network):
    folder = tmp_path / "network"
    write_case(network(), folder, frames=2, arrangement="para-only", backend="xnnpack")
    on_one_core_each(folder)
    report, made, wanted = arm.outputs(folder, "--frames", 4)
    assert_near(made, wanted)
    assert {each["type"] for each in report["plain"]} <= {"LRN"}


def test_a_folder_without_a_compiler_runs_as_the_readme_says(arm, tmp_path):
    program, built = Path(arm.command[-1]), Path(os.environ[BUILD]).absolute()
    (tmp_path / "build").symlink_to(program.parent)
    (tmp_path / "board").symlink_to(built / "board")
    heading = "On an image without a compiler"
    for command in commands("desk", heading):
        if not command.startswith("scp "):
            subprocess.run(["sh", "-ec", command], cwd=tmp_path, check=True)
    copied = {file.name for file in (tmp_path / "runner").iterdir()}
    needed = set().union(*(needed_by(tmp_path / "runner" / name) for name in copied))
    others = needed - copied - OF_THE_IMAGE - {LOADER, "libpthread.so.0"}
    assert all(f"`{name}`" in README for name in others), others
    assert copied - {"parapipe-native"} <= needed  # and nothing that no one needs

    write_case(separable(), tmp_path / "plan", backend="xnnpack")
    on_one_core_each(tmp_path / "plan")
    (command,) = commands("board", heading)
    environment, word, *rest = command.split()
    name, value = environment.split("=")
    done = subprocess.run(
        [*arm.command[:-1], word, *rest, "--frames", "2"],
        cwd=tmp_path, env={**os.environ, name: value}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "2 frames" in done.stdout

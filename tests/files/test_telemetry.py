"""ONNX Runtime reports nothing to its makers, unless the user wants it to."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from parapipe.files.script import start_script
from parapipe.files.telemetry import TELEMETRY
from parapipe.profiling.providers import onnx_runtime


@pytest.mark.parametrize(("own", "then"), [(None, "1"), ("0", "0")])
def test_reports_are_off_unless_the_variable_has_a_value(own, then, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv(TELEMETRY, own or "")
    if own is None:
        monkeypatch.delenv(TELEMETRY)
    (tmp_path / "run.py").write_bytes(start_script("run.py", "Run", "shown", ""))
    shown = f"import os\n\ndef main():\n    print(os.environ[{TELEMETRY!r}])\n    return 0\n"
    (tmp_path / "shown.py").write_text(shown, encoding="utf-8")
    command = [sys.executable, tmp_path / "run.py"]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert out.strip() == then
    onnx_runtime()
    assert os.environ[TELEMETRY] == then

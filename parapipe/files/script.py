"""The script that is started in an exported folder on a board, without parapipe."""

from __future__ import annotations

from parapipe.files.telemetry import TELEMETRY

_SCRIPT = '''"""{purpose}"""

import os
import signal
import sys

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def end(number, frame):
    """End at once: nothing is at work while modules are imported, or once all is done."""
    os.write(2, f"{name}: ended by {{signal.Signals(number).name}}\\n".encode())
    os._exit(128 + number)


for each in SIGNALS:
    if signal.getsignal(each) is not signal.SIG_IGN:
        signal.signal(each, end)
os.environ.setdefault("{telemetry}", "1")  # else ONNX Runtime reports each session
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
try:
    from {module} import main
except ModuleNotFoundError as error:
    if error.name not in ("numpy", "onnxruntime"):
        raise
    sys.exit(
        f"{name}: this Python has no {{error.name}}: install what is needed, as with "
        f"'{{sys.executable}} -m pip install {needed}'"
    )

if __name__ == "__main__":
    code = main()
    for each in SIGNALS:
        signal.signal(each, end)
    sys.exit(code)
'''


def start_script(name: str, purpose: str, module: str, needed: str) -> bytes:
    """Return the script, which imports `main` of a module beside it, and calls it.

    A signal while that is imported, or an import that is missing, is told in one line.

    Parameters
    ----------
    name
        Of its file.
    purpose
        What it does.
    module
        As in `folder.command`.
    needed
        What pip is to install.
    """
    return _SCRIPT.format(
        name=name, purpose=purpose, module=module, needed=needed, telemetry=TELEMETRY
    ).encode()

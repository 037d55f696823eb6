"""Makes docs/report.png, a picture of the report: `python docs/screenshot.py [--dark] [FILE]`."""

from __future__ import annotations

import sys
from base64 import b64decode
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.chromium import chromium, view
from parapipe import api

MODEL, PLATFORM = "zoo:inception-v3", "amlogic-a311d"
WIDTH, LAST_PART = 1280, "processors-heading"


def main() -> None:
    """Map the model, open its report and write the picture down to the schedule."""
    names = [argument for argument in sys.argv[1:] if argument != "--dark"]
    target = Path(names[0]) if names else Path(__file__).with_name("report.png")
    front = api.map_model(MODEL, PLATFORM)
    with TemporaryDirectory() as folder, chromium() as driver:
        path = Path(folder) / "report.html"
        front.write_report(path)
        view(driver, width=WIDTH, height=900, dark="--dark" in sys.argv)
        driver.get(f"{path.as_uri()}#{front['hybrid-T'].id}")
        bottom = driver.execute_script(
            "return document.getElementById(arguments[0]).getBoundingClientRect().top", LAST_PART
        )
        view(driver, width=WIDTH, height=int(bottom) - 30, dark="--dark" in sys.argv)
        taken = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
    target.write_bytes(b64decode(taken["data"]))
    print(f"{target}: {target.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()

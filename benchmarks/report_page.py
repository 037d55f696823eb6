"""`python -m benchmarks.report_page [MODEL ...]`: size of report pages, and how fast they draw.

Protocol: each model is mapped on the A311D with default options; its page is opened five times in
a headless Chromium, 1280 pixels wide, and the median and the most are printed of the milliseconds
from the start of navigation until all is drawn, and of redrawing all for another configuration.
Watched because a page should be there in under two seconds, whatever the model.
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import parapipe
from benchmarks.chromium import chromium, view

MODELS = ("zoo:googlenet", "zoo:inception-v3", "zoo:densenet-121")
RUNS = 5
DRAWN = "return performance.getEntriesByName('drawn')[0].startTime"
REDRAWN = """
  const key = arguments[0] % 2 ? "ArrowLeft" : "ArrowRight";
  const begin = performance.now();
  document.body.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
  document.body.getBoundingClientRect();
  return performance.now() - begin;
"""


def main() -> None:
    """Measure the models that are named, or `MODELS`."""
    print(f"{'model':<22}{'configurations':>15}{'MB':>7}{'draw ms':>9}{'most':>7}{'redraw ms':>11}")
    with TemporaryDirectory() as folder, chromium() as driver:
        view(driver, width=1280, height=900, dark=False)
        path = Path(folder) / "report.html"
        for model in sys.argv[1:] or MODELS:
            front = parapipe.map(model, "amlogic-a311d")
            front.write_report(path)
            drawn_ms, redrawn_ms = [], []
            for _ in range(RUNS):
                driver.get("about:blank")
                driver.get(path.as_uri())
                drawn_ms.append(driver.execute_script(DRAWN))
                redrawn_ms += [driver.execute_script(REDRAWN, i) for i in range(4)]
            print(
                f"{model:<22}{len(front):>15}{path.stat().st_size / 1e6:>7.2f}"
                f"{median(drawn_ms):>9.0f}{max(drawn_ms):>7.0f}{median(redrawn_ms):>11.0f}"
            )


if __name__ == "__main__":
    main()

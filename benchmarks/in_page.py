"""The explorer's page in headless Chromium: the first picture, and from a click to its picture.

    python -m benchmarks.in_page [--clicks 10]

Each network has a page of its own, opened from a file. A click is one on the large map of a deep
layer; it ends with the frame in which H is drawn. The first click on an image also finds its
activation pattern. Needs playwright and Chromium (or `--browser PATH`).
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from pathlib import Path
from time import perf_counter

import adjoint_lib as al

LAYERS = {"vgg7": "conv5", "resnet20": "conv18", "resnet20-fixup": "conv18"}
LIMITS = {"vgg7": 0.25, "resnet20": 1.0, "resnet20-fixup": 1.0}  # seconds, of a click
READY = "document.querySelector('[data-adjoint-explorer]').dataset.shown"
CLICK = """async ([row, column]) => {
  const root = document.querySelector("[data-adjoint-explorer]").shadowRoot;
  const part = (name) => root.querySelector(`[data-part=${name}]`);
  const canvas = part("one-canvas"), box = canvas.getBoundingClientRect();
  const drawn = new Promise((done) =>
    new MutationObserver(done).observe(part("parts-total"), {childList: true}));
  const start = performance.now();
  canvas.dispatchEvent(new MouseEvent("click", {
    bubbles: true, detail: 1,
    clientX: box.left + ((column + 0.5) * box.width) / canvas.width,
    clientY: box.top + ((row + 0.5) * box.height) / canvas.height,
  }));
  await drawn;
  await new Promise(requestAnimationFrame);
  return (performance.now() - start) / 1000;
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clicks", type=int, default=10)
    parser.add_argument("--browser", default=shutil.which("chromium"))
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    images, labels = al.data.sample("cifar10")
    print(f"{'network':<16}{'page':>9}{'opened':>10}{'click':>10}{'limit':>9}{'image':>10}")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=options.browser, args=["--no-sandbox"])
        for name, layer in LAYERS.items():
            net = al.equivalent(al.models.build(name, classes=10, weights="cifar10"))
            path = Path(folder) / f"{name}.html"
            net.explorer(images[:20], labels[:20], al.data.CLASS_NAMES["cifar10"]).save(path)
            opened, clicks, image = times(browser, path, layer, options.clicks)
            print(
                f"{name:<16}{path.stat().st_size / 1e6:>6.2f} MB{opened:>8.2f} s{clicks:>8.3f} s"
                f"{LIMITS[name]:>7.2f} s{image:>8.2f} s"
            )
        browser.close()
    print("opened: to the first picture. click: median. image: another image, to its picture.")


def times(browser, path: Path, layer: str, clicks: int) -> tuple[float, float, float]:
    """Seconds to the first picture, of a click (median), and of choosing another image."""
    page = browser.new_page()
    start = perf_counter()
    page.goto(f"{path.as_uri()}#layer={layer}")
    page.wait_for_function(READY, polling=10)
    opened = perf_counter() - start
    page.wait_for_timeout(1000)
    units = [(n % 7, (3 * n) % 7) for n in range(1, clicks + 1)]
    found = [page.evaluate(CLICK, unit) for unit in units]
    before = page.evaluate(READY)
    start = perf_counter()
    page.get_by_role("button", name="Image 1:").click()
    page.wait_for_function(f"before => {READY} !== before", arg=before, polling=10)
    image = perf_counter() - start
    page.close()
    return opened, statistics.median(found), image


if __name__ == "__main__":
    main()

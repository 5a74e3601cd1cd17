"""Pictures of the card "Memory over the step" of a page, light and dark, as the README shows them.

autockpt analyze examples/gpt.py:gpt8 --device cpu --budget 120MiB --html page.html
python tests/screenshot.py page.html examples/gpt8_page
"""

from __future__ import annotations

import base64
import sys
from io import BytesIO
from pathlib import Path

from browser import chromium, prefer, resize, visit, wait
from PIL import Image

WIDTH, MARGIN, COLOURS = 1100, 8, 128
_CARD = "return document.getElementById('timeline').closest('section').getBoundingClientRect().toJSON()"
_DRAWN = "return document.querySelectorAll('#timeline .main-svg').length > 0"


def screenshots(page: Path, name: str) -> None:
    for scheme, path in (("light", f"{name}.png"), ("dark", f"{name}_dark.png")):
        with chromium() as driver:
            prefer(driver, scheme)
            resize(driver, WIDTH, 3000)
            visit(driver, page.resolve())
            wait(driver, lambda driver=driver: driver.execute_script(_DRAWN))  # type: ignore[misc]  # bound in this round
            card = driver.execute_script(_CARD)
            clip = {"x": 0, "y": card["y"] - MARGIN, "width": WIDTH, "height": card["height"] + 2 * MARGIN, "scale": 1}
            taken = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "clip": clip})
        # A palette: a fifth of the bytes.
        image = Image.open(BytesIO(base64.b64decode(taken["data"]))).convert("RGB")
        image.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
        print(path, image.size, Path(path).stat().st_size, "bytes")


if __name__ == "__main__":
    screenshots(Path(sys.argv[1]), sys.argv[2])

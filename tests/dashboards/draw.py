"""Draws the dashboards for docs/images: `python -m tests.dashboards.draw docs/images`.

Not Grafana: an honest stand-in that takes each panel's place, colours, limits and texts from the dashboard's JSON and
its data from real query results, and draws them as plain SVG and HTML in a browser.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.dashboards import lapse
from tests.dashboards.drawing import page_html

MINUTES = 9
#: The first screen of a desk and of a laptop; the whole page where a page is longer.
SCREENS = {"1920": (1920, 1080), "1280": (1280, 800)}


def results(grafana):
    """Each dashboard's panels with what their queries found."""
    pages = {}
    for key, page in grafana.pages.items():
        values = grafana.values(page)
        panels = [
            {
                "panel": panel,
                "found": [grafana.data_of(target, values) for target in panel.get("targets", [])],
            }
            for panel in page["panels"]
        ]
        alerts, versions = page["annotations"]["list"]
        marks = [
            *(("alert", points[0][0]) for _, points in grafana.over_time(alerts["expr"], values)),
            *(
                ("version", row["time"].timestamp())
                for row in grafana.rows(versions["target"]["rawSql"], values)
            ),
        ]
        pages[key] = {"title": page["title"], "panels": panels, "marks": marks,
                      "began": grafana.began, "until": grafana.until, "values": values}  # fmt: skip
    return json.loads(json.dumps(pages, default=str))


def photographed(html, image, width, height):
    """A picture of a page, by a browser without a window."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "page.html"
        source.write_text(html)
        subprocess.run(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync",
             "--hide-scrollbars", f"--user-data-dir={folder}/profile", f"--window-size={width},{height}",
             f"--screenshot={image}", source.as_uri()],
            check=True, capture_output=True,
        )  # fmt: skip
        # few colours are enough for a page, and a third of the bytes
        subprocess.run(["pngquant", "--force", "--ext=.png", "64", image], check=True)


def draw(pages, folder):
    for key, page in pages.items():
        for name, (width, height) in SCREENS.items():
            html, whole = page_html(page, width)
            tall = whole if name == "1920" else height
            photographed(html, folder / f"{key}-{name}.png", width, tall)


def main(target):
    folder = Path(tempfile.mkdtemp(prefix="toolfault-lapse-"))
    try:
        with lapse.world(folder, MINUTES) as grafana:
            pages = results(grafana)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    draw(pages, target)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())

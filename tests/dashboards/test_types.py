"""Every dashboard is what Grafana's published types say a dashboard is."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMPILER = ROOT / "node_modules/typescript/bin/tsc"
STRICT = (
    "--strict",
    "--noEmit",
    "--skipLibCheck",
    "--module",
    "esnext",
    "--moduleResolution",
    "bundler",
)
WRONG = {
    '"showLegend": true': '"showLegnd": true',
    '"colorMode": "background_solid"': '"colorMode": "backgrund"',
    '"graphTooltip": 1': '"graphTooltip": "shared"',
    '"mode": "normal"': '"mode": "piled"',
    '"schemaVersion": 42': '"schemaVersion": "42"',
}
PAGES = sorted((ROOT / "dashboards").glob("*.json"))


def compiled(folder, **texts):
    """What the compiler has to say of pages, each given as JSON."""
    (folder / "node_modules").symlink_to(ROOT / "node_modules")
    (folder / "grafana.ts").write_text((ROOT / "tests/dashboards/grafana.ts").read_text())
    for name, text in texts.items():
        page = f'import type {{ Page }} from "./grafana";\nexport const page: Page = {text};\n'
        (folder / f"{name}.ts").write_text(page)
    sources = [f"{name}.ts" for name in texts]
    return subprocess.run(
        ["node", COMPILER, *STRICT, *sources],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    ).stdout


def test_grafana_s_types_accept_every_dashboard(tmp_path):
    assert len(PAGES) == 4
    assert (
        compiled(tmp_path, **{page.stem.replace("-", "_"): page.read_text() for page in PAGES})
        == ""
    )


def test_they_refuse_a_dashboard_with_a_wrong_key_or_value(tmp_path):
    text = (ROOT / "dashboards/overview.json").read_text()
    assert all(good in text for good in WRONG)
    told = compiled(
        tmp_path, **{f"page_{i}": text.replace(*change) for i, change in enumerate(WRONG.items())}
    )
    assert set(re.findall(r"^(page_\d).*error TS", told, re.MULTILINE)) == {
        f"page_{i}" for i in range(len(WRONG))
    }

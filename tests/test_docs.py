"""The documentation cannot rot: its tables come from the code and its examples run."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import toolfault
from toolfault.testing import assert_envelope

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLE = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def _module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_table_of_a_page_is_what_the_code_says(page):
    tables = _module(ROOT / "docs" / "tables.py")
    written = re.sub(r"\(ref [^)]*\)", "", page.read_text())
    assert re.sub(r"\(ref [^)]*\)", "", tables.rendered(page.read_text())) == written


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_python_example_of_a_page_runs(page):
    for example in EXAMPLE.findall(page.read_text()):
        done = subprocess.run(
            [sys.executable, "-c", example],
            env={"OTEL_SDK_DISABLED": "true", "PATH": ""},
            capture_output=True, text=True, timeout=30, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{example}\n{done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_file_leads_somewhere(page):
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_page_is_listed():
    index = (ROOT / "docs" / "README.md").read_text()
    for page in (ROOT / "docs").glob("*.md"):
        assert page.name == "README.md" or f"]({page.name})" in index, page.name


def test_every_option_of_the_guard_is_documented():
    guide = (ROOT / "docs" / "guard.md").read_text()
    for option in toolfault.guard.__kwdefaults__:
        assert f"`{option}`" in guide or f"`{option}=" in guide or f"{option}=" in guide, option


def test_the_booking_example_tells_the_worked_story():
    told = _module(ROOT / "examples" / "booking_agent.py").main()
    assert_envelope(told[0], code="INVALID_ARGUMENT", action="fix_arguments", field="date_")
    assert_envelope(told[1], code="UNAVAILABLE", action="retry_later")
    assert_envelope(told[2], code="UNAVAILABLE", action="stop_and_tell_user")
    assert_envelope(told[3], status="ok")
    assert_envelope(told[4], code="CONFLICT", action="choose_alternative", reason="slot_taken")
    assert "4711" not in str(told)
    assert "calendar.internal" not in str(told)


def test_the_tour_of_tool_errors_ends_as_its_titles_say():
    told = _module(ROOT / "examples" / "tool_errors.py").main()
    ended = {
        case: (e["outcome"], e["code"], e["attempts"], e["effect"]) for case, e in told.items()
    }
    assert ended == {
        "a failed connection is repeated": ("ok", None, 2, "applied"),
        "a status decides where no type does": ("failed", "PERMISSION_DENIED", 1, "none"),
        "a refusal is an answer, told once": ("declined", "CONFLICT", 1, "none"),
        "an author's own error is not overruled": ("declined", "CONFLICT", 1, "none"),
        "an exception nobody mapped is not repeated": ("failed", "INTERNAL", 1, "unknown"),
        "unless repeating does no harm": ("ok", None, 2, "applied"),
        "a permanent failure is not repeated": ("failed", "NOT_FOUND", 1, "none"),
        "a time-out may have cancelled it": ("timed_out", "UNAVAILABLE", 1, "unknown"),
    }
    assert "not-a-real-token" not in str(told)

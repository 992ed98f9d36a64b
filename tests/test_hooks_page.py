"""The page about hooks names the versions that the tests have run with."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TESTED = re.findall(
    r"^\| ([a-z-]+) \| (\d\S+) \|$", (ROOT / "docs" / "hooks.md").read_text(), re.MULTILINE
)


@pytest.mark.parametrize(("package", "version"), TESTED)
def test_a_version_of_the_page_is_the_one_in_the_lock(package, version):
    locks = [lock.read_text() for lock in (ROOT / "tests" / "hooks").glob("*/requirements.lock")]
    assert any(re.search(rf"^{package}(\[.*\])?=={version} ", lock, re.MULTILINE) for lock in locks)


def test_every_framework_with_tests_has_its_version_on_the_page():
    assert len(TESTED) >= len(list((ROOT / "tests" / "hooks").glob("*/requirements.lock")))

"""The card in the terminal."""

import pytest
from tests.browser.site import served
from tests.web.conftest import call

from toolfault.store.write import Writer


@pytest.fixture
def stored(database_url):
    """Two calls and the address of a service that has them."""
    writer, calls = Writer.open(database_url), [call(), call()]
    writer.load(calls)
    writer.close()
    with served(database_url) as url:
        yield url, [one.reference_id for one in calls]


def test_a_title_is_wrapped_and_never_cut(stored, toolfault):
    url, (reference, _) = stored
    code, out, _ = toolfault("lookup", reference, "--url", url, COLUMNS="40")

    assert code == 0
    assert "…" not in out
    told = " ".join(line.strip("│ ") for line in out.splitlines())
    assert "book_meeting failed because of a fault in the tool" in told


def test_several_references_in_one_paste_are_all_named(stored, toolfault):
    url, (first, second) = stored
    code, out, _ = toolfault(
        "lookup", f"it said {first} and then", f"{second}, {'please ' * 500}help", "--url", url
    )

    assert code == 0
    assert out.index(first) < out.index("The text names other references too:")
    assert f"  toolfault lookup {second}" in out

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


def _one_line(out):
    return " ".join(" ".join(line.strip("│ ") for line in out.splitlines()).split())


@pytest.mark.parametrize(
    ("pasted", "hint"),
    [
        ("CONVERSATION", "a conversation: toolfault errors --conversation CONVERSATION"),
        ("c-1", "a conversation: toolfault errors --conversation c-1"),
        ("it's", "a conversation: toolfault errors --conversation 'it'\"'\"'s'"),
        ("it failed again", "a conversation: toolfault errors --conversation ID"),
        ("0AF7651916CD43DD8448EB211C80319C",
         "a trace: toolfault errors --trace 0af7651916cd43dd8448eb211c80319c"),
    ],
)  # fmt: skip
def test_what_may_be_the_id_of_something_else_is_told_its_command(stored, toolfault, pasted, hint):
    url, _ = stored
    code, out, _ = toolfault("lookup", pasted, "--url", url)

    assert code == 1
    assert f"For the errors of {hint}" in _one_line(out)


def test_a_genuine_reference_is_not_taken_for_another_id(stored, toolfault):
    url, _ = stored

    assert "toolfault errors" not in toolfault("lookup", "938N-KRKA-S18P", "--url", url)[1]


@pytest.mark.parametrize("nothing", ["", " \n"])
def test_nothing_to_look_up_is_a_sentence(toolfault, nothing):
    assert toolfault("lookup", nothing, "--json") == (
        2,
        "",
        "toolfault: Nothing to look up. Give a reference, or the text it stands in.\n",
    )

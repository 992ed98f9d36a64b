"""Lists in the terminal and as CSV; text of strangers is inert in both, one record one line."""

import csv
import io
import json
import unicodedata

import pytest
from tests.browser.site import served
from tests.web.conftest import call

from toolfault import conventions as names
from toolfault.cli import tables
from toolfault.store.write import Writer

HOSTILE = '=HYPERLINK("http://x")\r\n,\u202egnp.exe\x1b[31m\'",<script>{{7*7}}\u2028@sum\ttab'
SHOWN = "at,tool,outcome,code,reason,field,effect,reference"


@pytest.fixture
def service(database_url):
    """Pages over one call that is hostile in every field and one that begins like a formula."""
    texts = dict.fromkeys(["service", "environment", "tool", "agent", "version", "frame"], HOSTILE)
    writer = Writer.open(database_url)
    writer.load([
        call(**texts, reason="-2+3", conversation_id="\t=1", exception_type="+1",
             attributes={names.FIELD: HOSTILE}),
        call(tool="plain", fingerprint=b"fingerprint-0002", conversation_id="=" + "x" * 5000,
             attributes={names.FIELD: "attendees.0.email"}),
    ])  # fmt: skip
    writer.close()
    with served(database_url) as url:
        yield url


@pytest.mark.parametrize("command", ["errors", "groups"])
def test_csv_is_one_line_a_record_and_no_cell_is_a_formula_or_hides_anything(
    service, toolfault, command
):
    code, out, _ = toolfault(command, "--csv", "--url", service)

    header, *records = out.splitlines()
    assert code == 0
    assert len(records) == 2
    assert len(out.split("\n")) == 4  # each line ends, no other line end is in it
    for row in csv.reader(io.StringIO(out)):
        assert len(row) == len(header.split(","))
        assert not [cell for cell in row if cell.startswith(tuple("=+-@\t\r"))]
        assert not [symbol for cell in row for symbol in cell
                    if unicodedata.category(symbol) in ("Cc", "Cf")]  # fmt: skip


def test_csv_names_its_columns_and_keeps_plain_values_as_they_are(service, toolfault):
    _, out, _ = toolfault("errors", "--csv", "--tool", "plain", "--url", service)

    (row,) = csv.DictReader(io.StringIO(out))
    assert out.startswith(SHOWN)
    assert (row["tool"], row["outcome"], row["attempts"], row["duration"]) == (
        "plain", "failed", "1", "2.6",
    )  # fmt: skip
    assert row["conversation_id"].startswith("'=xxx")
    assert row["field"] == "attendees.0.email"


@pytest.mark.parametrize(
    ("narrowed", "found"),
    [
        (("--tool", "plain"), 1),
        (("--conversation", "\t=1"), 1),
        (("--trace", "0" * 32), 0),
        (("--since", "2020-01-01T00:00:00Z"), 2),
        (("--since", "2020-01-01"), 2),
        (("--since", "7d"), 2),
        (("--until", "2h"), 0),
        (("--until", "2020-01-01T00:00:00Z"), 0),
    ],
)
def test_errors_are_narrowed_as_on_the_page(service, toolfault, narrowed, found):
    _, out, _ = toolfault("errors", "--json", "--url", service, *narrowed)

    assert len(json.loads(out)["items"]) == found


def test_errors_are_narrowed_to_a_trace(service, toolfault):
    _, out, _ = toolfault("errors", "--json", "--url", service)
    trace = json.loads(out)["items"][0]["trace_id"]
    _, out, _ = toolfault("errors", "--json", "--trace", trace.upper(), "--url", service)

    assert [item["trace_id"] for item in json.loads(out)["items"]] == [trace]


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("errors", "--trace", "nope"),
         "a trace. One has 32 characters, 0-9 and a-f; "
         "a card or `toolfault errors --csv` shows it."),
        (("dead-letters", "show", "nope"),
         "a dead letter. One has 32 characters, 0-9 and a-f; "
         "`toolfault dead-letters list` shows it."),
        (("dead-letters", "ack", "nope"),
         "a dead letter. One has 32 characters, 0-9 and a-f; "
         "`toolfault dead-letters list` shows it."),
    ],
)  # fmt: skip
def test_an_id_of_another_form_is_told_what_one_looks_like_and_where_it_stands(
    toolfault, command, told
):
    assert toolfault(*command) == (2, "", f"toolfault: 'nope' is not the id of {told}\n")


def test_an_empty_list_is_a_line_of_names(service, toolfault):
    _, out, _ = toolfault("errors", "--csv", "--tool", "nothing", "--url", service)

    assert len(out.splitlines()) == 1


def test_json_and_csv_at_once_are_refused(toolfault):
    code, _, err = toolfault("groups", "--csv", "--json")

    assert code == 2
    assert "--json and --csv exclude each other" in err


@pytest.mark.parametrize("command", ["errors", "groups"])
def test_the_table_shows_no_character_that_a_terminal_would_obey(service, toolfault, command):
    code, out, _ = toolfault(command, "--url", service)

    assert code == 0
    assert not [symbol for symbol in out
                if symbol != "\n" and unicodedata.category(symbol) in ("Cc", "Cf")]  # fmt: skip


def test_the_card_shows_no_character_that_a_terminal_would_obey(service, toolfault):
    _, out, _ = toolfault("errors", "--json", "--url", service)
    for item in json.loads(out)["items"]:
        code, card, _ = toolfault("lookup", item["reference"], "--url", service)
        assert code == 0
        assert not set(card) & set("\x1b\u202e\r\t")


def test_json_holds_hostile_text_as_it_is_escaped_on_one_line(service, toolfault):
    _, out, _ = toolfault("errors", "--json", "--url", service)

    assert HOSTILE in {item["tool"] for item in json.loads(out)["items"]}
    assert out.isascii()
    assert not set(out) & set("\x1b\r\t")


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@sum", "'@sum"),
        ("\t=1", "'\ufffd=1"),
        ("\r=1", "'\ufffd=1"),
        ("\n=1", "'=1"),
        ("＝1", "'＝1"),
        (-1, "-1"),
        (2.5, "2.5"),
        (None, ""),
        (["=a", "b"], "'=a, b"),
        ("a=b", "a=b"),
        ("two\nlines", "two lines"),
    ],
)
def test_a_cell_that_a_spreadsheet_would_run_begins_with_an_apostrophe(value, cell):
    written = tables.as_csv([{"a": value, "b": "end"}], "a", "b")

    assert list(csv.reader(io.StringIO(written)))[1] == [cell, "end"]

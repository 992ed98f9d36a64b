"""`toolfault import`: files of the Collector go into the store, once, and page nobody."""

import gzip
import json
import os
import time
from datetime import UTC, datetime

import psycopg
import pytest

from toolfault import reference
from toolfault.ingest.importing import Notes
from toolfault.store import partitions, schema

NANOSECONDS = 10**9


def _attributes(**values):
    def value(of):
        return {"intValue": str(of)} if isinstance(of, int) else {"stringValue": of}

    return [{"key": key.replace("__", "."), "value": value(of)} for key, of in values.items()]


def _resource(service="booking"):
    return {"attributes": _attributes(service__name=service)}


def span_line(number, *, seconds_ago=1, outcome="failed"):
    """A line with one tool call, as the file exporter writes it."""
    start = time.time_ns() - seconds_ago * NANOSECONDS
    attributes = _attributes(
        gen_ai__operation__name="execute_tool", gen_ai__tool__name="book", toolfault__outcome=outcome,
        toolfault__start=start, toolfault__attempts=1,
    )  # fmt: skip
    if outcome == "failed":
        attributes += _attributes(
            toolfault__code="INTERNAL", toolfault__reason="unmapped_failure",
            toolfault__reference_id=reference.new(random=number),
        )  # fmt: skip
    span = {
        "traceId": f"{number:032x}", "spanId": f"{number:016x}", "name": "execute_tool book",
        "kind": 1, "startTimeUnixNano": str(start), "endTimeUnixNano": str(start + 1000),
        "attributes": attributes, "status": {},
    }  # fmt: skip
    scope = {"scope": {}, "spans": [span]}
    return json.dumps({"resourceSpans": [{"resource": _resource(), "scopeSpans": [scope]}]})


def event_line(number, name, **attributes):
    record = {
        "timeUnixNano": str(time.time_ns()), "eventName": name, "traceId": f"{number:032x}",
        "spanId": f"{number:016x}", "attributes": _attributes(**attributes),
    }  # fmt: skip
    scope = {"scope": {}, "logRecords": [record]}
    return json.dumps({"resourceLogs": [{"resource": _resource(), "scopeLogs": [scope]}]})


METRICS_LINE = json.dumps(
    {"resourceMetrics": [{"scopeMetrics": [{"metrics": [{"name": "m"}, {"name": "n"}]}]}]}
)


@pytest.fixture
def store(database_url, tmp_path, toolfault):
    """Runs the command on files of given lines: exit code, its JSON, errors."""
    with psycopg.connect(database_url) as conn:
        partitions.maintain(conn, datetime.now(UTC), partitions.Retention(days=7))
    return Store(database_url, tmp_path, toolfault)


class Store:
    def __init__(self, url, folder, command):
        self.url, self.folder, self._command = url, folder, command

    def file(self, *lines, name="spans.json", end="\n"):
        path = self.folder / name
        text = "\n".join(lines) + end
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return path

    def run(self, *arguments):
        return self._command(
            "import", *map(str, arguments),
            TOOLFAULT_DATABASE_URL=self.url, TOOLFAULT_DATA_DIR=str(self.folder / "data"),
        )  # fmt: skip

    def imported(self, *arguments):
        """What a run without a mistake counted."""
        code, out, err = self.run("--json", *arguments)
        assert (code, err) == (0, "")
        told = json.loads(out)
        assert told.pop("bad") == []
        return told

    def rows(self, query):
        with psycopg.connect(self.url) as conn:
            return conn.execute(query).fetchall()

    def totals(self):
        return self.rows("SELECT metric, sum(amount)::int FROM event_total GROUP BY metric")


def counts(lines, *, calls=0, events=0, logs=0, known=0, ignored=0):
    return {
        "lines": lines, "calls": calls, "events": events, "logs": logs, "known": known,
        "ignored": ignored,
    }  # fmt: skip


def test_spans_events_and_metrics_of_the_collector_are_read(store):
    spans = store.file(span_line(1), span_line(2, outcome="ok"), METRICS_LINE)
    logs = store.file(
        event_line(3, "toolfault.budget_exhausted", gen_ai__tool__name="book"),
        event_line(4, "something.else"),
        name="logs.json.gz",
    )

    assert store.imported(spans, logs) == counts(5, calls=2, events=1, ignored=3)
    assert store.rows("SELECT service, tool, outcome FROM tool_call_all ORDER BY outcome") == [
        ("booking", "book", "failed"),
        ("booking", "book", "ok"),
    ]


def test_what_is_imported_moves_no_total_that_an_alert_reads_however_young_it_is(store):
    file = store.file(
        span_line(1, seconds_ago=1),
        span_line(2, seconds_ago=3600),
        event_line(3, "toolfault.budget_exhausted", gen_ai__tool__name="book"),
        event_line(4, "toolfault.telemetry_dropped", toolfault__count=7),
    )
    store.imported(file)

    assert store.rows("SELECT * FROM call_total") == []
    assert store.totals() == [("toolfault_late_calls", 2)]  # with these all rows are accounted for
    assert store.rows("SELECT sum(calls)::int FROM call_tally") == [(2,)]


def test_a_group_is_neither_announced_nor_opened_again(store):
    store.imported(store.file(span_line(1)))
    with psycopg.connect(store.url) as conn:
        conn.execute("UPDATE error_group SET status = 'resolved'")
    store.imported(store.file(span_line(2), name="more.json"))

    assert store.rows("SELECT status, versions FROM error_group") == [("resolved", [])]
    assert store.totals() == [("toolfault_late_calls", 2)]


def test_a_tool_that_is_declared_starts_at_0(store):
    declared = event_line(1, "toolfault.tool_declared", gen_ai__tool__name="book")
    store.imported(store.file(declared))

    assert store.rows("SELECT tool, sum(calls)::int FROM call_total GROUP BY tool") == [("book", 0)]


def test_a_second_import_reads_only_what_was_added(store):
    file = store.file(span_line(1), span_line(2))
    assert store.imported(file) == counts(2, calls=2)
    assert store.imported(file) == counts(0)

    with file.open("a") as more:
        more.write(span_line(3) + "\n")
    assert store.imported(file) == counts(1, calls=1)


def test_an_import_from_the_beginning_stores_nothing_twice(store):
    file = store.file(span_line(1), span_line(2))
    store.imported(file)

    assert store.imported("--again", file) == counts(2, known=2)
    assert store.totals() == [("toolfault_late_calls", 2)]


def test_a_file_that_took_the_name_of_another_one_is_read_from_its_beginning(store):
    file = store.file(span_line(1), span_line(2))
    store.imported(file)
    os.replace(store.file(span_line(3), name="new.json"), file)  # noqa: PTH105

    assert store.imported(file) == counts(1, calls=1)


def test_another_database_is_given_everything(store, new_database):
    file = store.file(span_line(1))
    store.imported(file)
    store.url = new_database()

    assert store.imported(file) == counts(1, calls=1)


def test_an_import_goes_on_where_the_database_went_away(store, monkeypatch):
    monkeypatch.setattr("toolfault.ingest.importing.GROUP_ROWS", 2)
    file = store.file(*map(span_line, range(1, 6)))
    note, noted = Notes.write, []

    def note_and_cut(notes, file, place):
        note(notes, file, place)
        noted.append(place.line)
        with psycopg.connect(store.url, autocommit=True) as conn:
            conn.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )

    with monkeypatch.context() as patch:
        patch.setattr(Notes, "write", note_and_cut)
        code, out, err = store.run("--json", file)

    assert (code, out) == (1, "")
    assert "goes on from here" in err
    assert noted == [2]
    assert store.imported(file) == counts(3, calls=3)


def test_bad_lines_are_told_by_file_and_line_and_the_others_are_stored(store):
    short = span_line(3).replace(f'"{3:032x}"', '"00"')
    bad = ["hello", '{"resourceSpans": [}', '{"resourceSpans": 7}', "{}", short]
    file = store.file(span_line(1), *bad, "", span_line(2))
    code, out, err = store.run(file)

    assert code == 1
    assert "8 lines: 2 calls" in out
    assert [line.partition(f"{file}:")[2].partition(":")[0] for line in err.splitlines()] == [
        "2", "3", "4", "5", "6",
    ]  # fmt: skip
    assert "1 of its records cannot be stored" in err.splitlines()[-1]
    assert "Traceback" not in err


def test_a_line_longer_than_a_request_may_be_is_passed_over(store, monkeypatch):
    monkeypatch.setenv("TOOLFAULT_MAX_REQUEST_BYTES", "2000")
    file = store.file(span_line(1), "x" * 2_500_000, span_line(2))
    code, out, _ = store.run("--json", file)
    told = json.loads(out)

    assert code == 1
    assert told["calls"] == 2
    assert told["bad"] == [{"file": str(file), "line": 2, "problem": "is longer than 2,000 bytes"}]


def test_a_line_the_collector_was_still_writing_is_read_again_when_it_is_whole(store):
    second = span_line(2)
    file = store.file(span_line(1), second[:40], end="")
    code, out, _ = store.run("--json", file)
    assert (code, json.loads(out)["bad"][0]["line"]) == (1, 2)

    with file.open("a") as rest:
        rest.write(second[40:] + "\n")
    assert store.imported(file) == counts(1, calls=1)


def test_a_gzip_file_that_is_cut_off_gives_what_it_holds(store):
    file = store.file(*map(span_line, range(1, 200)), name="spans.json.gz")
    file.write_bytes(file.read_bytes()[:-400])
    code, out, err = store.run("--json", file)

    assert code == 1
    assert json.loads(out)["calls"] > 0
    assert "cannot be read" in json.loads(out)["bad"][-1]["problem"]
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("head", "sentence"), [(None, "cannot be read"), (b"\x28\xb5\x2f\xfd", "zstd")]
)
def test_a_file_that_cannot_be_read_is_told_before_any_is_begun(store, head, sentence):
    other = store.folder / "other.json"
    if head:
        other.write_bytes(head)
    code, _, err = store.run(store.file(span_line(1)), other)

    assert code == 2
    assert sentence in err
    assert store.rows("SELECT 1 FROM tool_call") == []


def test_a_database_no_service_has_used_yet_is_told(store, empty_database_url):
    schema.upgrade(empty_database_url)
    store.url = empty_database_url
    code, _, err = store.run(store.file(span_line(1)))

    assert code == 1
    assert "toolfault up" in err

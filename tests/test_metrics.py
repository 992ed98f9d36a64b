"""Totals of the store as Prometheus metrics."""

from datetime import UTC, date, datetime

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics

from toolfault import conventions as names
from toolfault.metrics import StoreSize, Together, ToolTotals, exposition
from toolfault.store.queries.totals import Buckets, CallTotal, EventTotal, Size, Totals, Waiting

ACCEPT = "application/openmetrics-text; version=1.0.0"
AT = datetime(2026, 11, 30, 14, 7, 31, tzinfo=UTC)
PLACE = ("calendar-agent", "production", "book_meeting")


def total(
    outcome="failed", code="INTERNAL", calls=1, reference="938N-KRKA-S18P", trace=bytes(range(16))
):
    return CallTotal(*PLACE, outcome, code, calls, 1000, calls, AT, reference, trace)


def key(name, *values):
    return (name, *sorted(values))


def parsed(totals):
    body, content_type = exposition(ToolTotals(lambda: totals), ACCEPT)
    assert content_type.startswith("application/openmetrics-text")
    return {
        key(sample.name, *sample.labels.values()): sample
        for family in openmetrics(body.decode())
        for sample in family.samples
    }


def test_an_exemplar_carries_reference_trace_and_time():
    found = parsed(Totals([total()], [], [], []))
    exemplar = found[key("toolfault_tool_calls_total", *PLACE, "failed", "INTERNAL")].exemplar
    assert exemplar.labels == {
        "ref": "938N-KRKA-S18P",
        "trace_id": "000102030405060708090a0b0c0d0e0f",
    }
    assert float(exemplar.timestamp) == AT.timestamp()


def test_an_exemplar_longer_than_openmetrics_allows_is_left_out():
    longest = 128 - len("ref" + "trace_id") - 32
    kept = parsed(Totals([total(reference="x" * longest)], [], [], []))
    left_out = parsed(Totals([total(reference="x" * (longest + 1))], [], [], []))
    failed = key("toolfault_tool_calls_total", *PLACE, "failed", "INTERNAL")
    assert kept[failed].exemplar is not None
    assert left_out[failed].exemplar is None


def test_a_total_without_an_exemplar_is_shown():
    found = parsed(Totals([total("ok", "OK", 7, None, None)], [], [], []))
    assert found[key("toolfault_tool_calls_total", *PLACE, "ok", "OK")].value == 7


def test_buckets_add_up_to_their_count():
    durations, attempts = [1] * 15, [2] * 8
    rows = [Buckets(*PLACE, 2_500_000, 16, durations, attempts)]
    found = parsed(Totals([], rows, [], []))
    assert found[key("toolfault_tool_call_duration_seconds_bucket", *PLACE, "0.01")].value == 1
    assert found[key("toolfault_tool_call_duration_seconds_bucket", *PLACE, "81.92")].value == 14
    assert found[key("toolfault_tool_call_duration_seconds_count", *PLACE)].value == 15
    assert found[key("toolfault_tool_call_duration_seconds_sum", *PLACE)].value == 2.5
    assert found[key("toolfault_tool_attempts_bucket", *PLACE, "+Inf")].value == 16


def test_each_event_has_its_own_labels_and_unknown_ones_are_left_out():
    events = [
        EventTotal(names.BUDGET_EXHAUSTED_TOTAL, *PLACE, 1),
        EventTotal(names.LATE_CALLS, *PLACE[:2], "", 2),
        EventTotal(names.ERROR_GROUPS_NEW, *PLACE[:2], "a tool with spaces INTERNAL", 3),
        EventTotal(names.MODEL_CALLS, *PLACE[:2], "large", 4),
        EventTotal("toolfault_of_a_later_version", *PLACE[:2], "", 5),
    ]
    found = parsed(Totals([], [], events, []))
    assert {name: sample.value for name, sample in found.items()} == {
        key("toolfault_budget_exhausted_total", *PLACE): 1,
        key("toolfault_late_calls_total", *PLACE[:2]): 2,
        key("toolfault_error_groups_new_total", *PLACE[:2], "a tool with spaces", "INTERNAL"): 3,
        key("toolfault_model_calls_total", *PLACE[:2], "large"): 4,
    }


def test_dead_letters_are_a_gauge():
    found = parsed(Totals([], [], [], [Waiting(*PLACE, 3)]))
    assert found[key("toolfault_dead_letters_waiting", *PLACE)].value == 3


def test_a_replicas_own_metrics_and_the_stores_size_stand_together():
    registry = CollectorRegistry()
    Gauge("own", "Own.", registry=registry).set(1)
    size = StoreSize(lambda: Size(1024, date(2026, 12, 7)), lambda: date(2026, 11, 30))
    body, _ = exposition(Together(registry, size), "")
    text = body.decode()
    assert "own 1.0" in text
    assert "toolfault_database_bytes 1024.0" in text
    assert "toolfault_partitions_ahead 7.0" in text

"""The API and the plain routes, over HTTP."""

from urllib.parse import quote

import httpx
import pytest
from prometheus_client import CollectorRegistry, Counter
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as plain

from toolfault import conventions as names
from toolfault.store.queries.base import open_engine
from toolfault.web.app import make_app

OPENMETRICS = {"Accept": "application/openmetrics-text; version=1.0.0"}


async def test_a_found_reference_answers_200_with_its_matches(store, make, web):
    call = make.call()
    store([call])
    response = await web.get(f"/api/v1/references/{call.reference_id}")
    body = response.json()
    assert response.status_code == 200
    assert (body["reference"], body["state"], body["suggestions"]) == (
        call.reference_id,
        "found",
        [],
    )
    match = body["matches"][0]
    assert (match["tool"], match["code"], match["trace_id"]) == (
        "book_meeting",
        "INTERNAL",
        call.trace_id.hex(),
    )


async def test_anything_else_answers_404_with_the_same_body(web):
    response = await web.get("/api/v1/references/not a reference at all")
    body = response.json()
    assert response.status_code == 404
    assert (body["state"], body["matches"]) == ("unknown", [])
    assert body["next_step"]


async def test_a_reference_may_hold_slashes_and_percent_signs(store, make, web):
    store([make.call(reference_id="a/b%2Fc")])
    response = await web.get("/api/v1/references/a%2Fb%252Fc")
    assert response.json()["reference"] == "a/b%2Fc"


@pytest.mark.parametrize(
    "broken", ["Please help\n(ref {})", "ref\r\n{}\n", "{}\u2028thanks", "\n{}"]
)
async def test_a_paste_may_hold_line_breaks(store, make, web, broken):
    call = make.call()
    store([call])
    pasted = quote(broken.format(call.reference_id), safe="")
    answer = await web.get(f"/api/v1/references/{pasted}")
    assert (answer.status_code, answer.json()["reference"]) == (200, call.reference_id)
    page = await web.get(f"/r/{pasted}")
    assert page.status_code == 200
    assert call.reference_id in page.text


async def test_a_paste_with_line_breaks_and_no_reference_has_a_state_too(web):
    answer = await web.get("/api/v1/references/it%0Afailed%0A")
    assert (answer.status_code, answer.json()["state"]) == (404, "unknown")
    assert "Nothing is known" in (await web.get("/r/it%0Afailed%0A")).text


async def test_a_long_paste_is_read_to_its_end(store, make, web):
    call = make.call()
    store([call])
    read = await web.get(f"/api/v1/references/{'x.' * 31_000}/{call.reference_id}")
    assert read.json()["reference"] == call.reference_id


@pytest.mark.parametrize(
    ("path", "query"), [("/api/v1/references/{}", ""), ("/r/{}", ""), ("/look", "q={}")]
)
async def test_a_longer_one_is_refused_with_a_sentence(engine, path, query):
    text = "x" * 65_537
    app, sent = make_app(engine, registry=CollectorRegistry()), []
    scope = {
        "type": "http",
        "method": "GET",
        "path": path.format(text),
        "raw_path": path.format(text).encode(),
        "query_string": query.format(text).encode(),
        "headers": [(b"host", b"127.0.0.1:8700")],
    }

    async def send(message):
        sent.append(message)

    # Clients refuse such an address of themselves.
    await app(scope, None, send)
    assert sent[0]["status"] == 414
    assert "longer than 65,536 characters" in sent[1]["body"].decode()


async def test_every_look_up_is_recorded(web, connection):
    await web.get("/api/v1/references/938N-KRKA-S18Q")
    rows = connection.execute("SELECT asked, state, token_id FROM lookup_audit").fetchall()
    assert rows == [("938N-KRKA-S18Q", "mistyped", None)]


async def test_a_pasted_sentence_is_not_kept(web, connection):
    await web.get("/api/v1/references/my password is hunter2 (ref 938N-KRKA-S18Q) please help me")
    asked = connection.execute("SELECT asked FROM lookup_audit").fetchall()
    assert asked == [("938N-KRKA-S18Q",)]


async def test_unknown_routes_and_wrong_values_are_problem_details(web):
    response = await web.get("/api/v1/nothing")
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json()["status"] == 404


async def test_a_wrong_method_is_told_the_right_ones(web):
    response = await web.delete("/api/v1/errors")
    assert (response.status_code, response.headers["allow"]) == (405, "GET")


@pytest.mark.parametrize(
    "path", ["/", "/errors", "/healthz", "/readyz", "/api/v1/errors", "/metrics"]
)
async def test_head_is_the_answer_without_its_body(web, path):
    whole, head = await web.get(path), await web.head(path)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"] == whole.headers["content-type"]


async def test_head_of_what_only_takes_a_post_is_refused(web):
    assert (await web.head("/api/v1/alerts")).status_code == 405


async def test_the_api_asks_for_a_token_only_where_one_is_needed(browse):
    for is_open, asks in ((True, False), (False, True)):
        document = (await browse(is_open=is_open).get("/api/openapi.json")).json()
        assert ("security" in document["paths"]["/api/v1/errors"]["get"]) is asks


async def test_the_api_describes_itself(web):
    document = (await web.get("/api/openapi.json")).json()
    answers = document["paths"]["/api/v1/references/{ref}"]["get"]["responses"]
    schema = {"$ref": "#/components/schemas/Answer"}
    assert [answers[code]["content"]["application/json"]["schema"] for code in ("200", "404")] == [
        schema,
        schema,
    ]


async def test_liveness_and_readiness_with_its_reason(browse):
    web = browse(readiness=lambda: "Partitions are being made.")
    assert (await web.get("/healthz")).status_code == 200
    response = await web.get("/readyz")
    assert (response.status_code, response.json()["reason"]) == (503, "Partitions are being made.")


async def test_a_ready_service_says_so(web):
    assert (await web.get("/readyz")).json() == {"status": "ready"}


async def test_without_a_database_everything_says_so_and_nothing_fails(browse):
    away = open_engine("postgresql://nobody@127.0.0.1:1/none")
    transport = httpx.ASGITransport(make_app(away, registry=CollectorRegistry()))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as web:
        ready = await web.get("/readyz")
        api = await web.get("/api/v1/references/938N-KRKA-S18P")
        page = await web.get("/r/938N-KRKA-S18P")
    assert (ready.status_code, ready.json()["reason"]) == (503, "The database does not answer.")
    assert (api.status_code, api.headers["retry-after"]) == (503, "5")
    assert page.status_code == 503
    assert "The database does not answer." in page.text
    away.dispose()


def samples(families):
    return {
        (sample.name, *sorted(sample.labels.items())): sample
        for family in families
        for sample in family.samples
    }


def labels(**more):
    return sorted(
        {
            "service": "calendar-agent",
            "environment": "production",
            "tool": "book_meeting",
            **more,
        }.items()
    )


async def test_tool_metrics_in_both_formats_hold_the_same_totals(store, make, web):
    failed = make.call(duration_us=15_000, attempts=2)
    store([failed, make.ok(duration_us=5_000)], [make.declared()])
    old = samples(plain((await web.get("/metrics/tools")).text))
    new = samples(openmetrics((await web.get("/metrics/tools", headers=OPENMETRICS)).text))
    key = ("toolfault_tool_calls_total", *labels(outcome="failed", code="INTERNAL"))
    assert (old[key].value, new[key].value) == (1, 1)
    assert new[key].exemplar.labels == {
        "ref": failed.reference_id,
        "trace_id": failed.trace_id.hex(),
    }
    assert {name: sample.value for name, sample in old.items()} == {
        name: sample.value for name, sample in new.items()
    }


async def test_histograms_are_cumulative_with_the_last_bucket_as_their_count(store, make, web):
    store(
        [make.call(duration_us=15_000, attempts=2), make.ok(duration_us=100_000_000)],
        [make.declared()],
    )
    found = samples(openmetrics((await web.get("/metrics/tools", headers=OPENMETRICS)).text))

    def value(suffix, **more):
        return found[(names.TOOL_CALL_DURATION + suffix, *labels(**more))].value

    assert [value("_bucket", le=le) for le in ("0.01", "0.02", "81.92", "+Inf")] == [0, 1, 1, 2]
    assert (value("_count"), value("_sum")) == (2, 100.015)
    attempts = [
        found[("toolfault_tool_attempts_bucket", *labels(le=le))].value for le in ("1.0", "2.0")
    ]
    assert attempts == [1, 2]


async def test_a_declared_tool_starts_at_zero(store, make, web):
    store(events=[make.declared()])
    found = samples(plain((await web.get("/metrics/tools")).text))
    assert (
        found[("toolfault_tool_calls_total", *labels(outcome="failed", code="INTERNAL"))].value == 0
    )


@pytest.mark.parametrize(
    ("event", "fields", "metric", "own"),
    [
        (
            names.BUDGET_EXHAUSTED,
            {"label": "book_meeting"},
            "budget_exhausted",
            {"tool": "book_meeting"},
        ),
        (names.UNREGISTERED_TOOL, {"label": "made_up"}, "unregistered_tool_calls", {}),
        (
            names.RUN_LIMIT_EXCEEDED,
            {"label": "planner"},
            "run_limit_exceeded",
            {"agent": "planner"},
        ),
        (
            names.MODEL_CALL,
            {"label": "large", "amount": 1, "outcome": "ok"},
            "model_calls",
            {"model": "large"},
        ),
        (names.TELEMETRY_DROPPED, {"amount": 1}, "telemetry_dropped", {}),
    ],
)
async def test_events_have_totals_of_their_own(  # noqa: PLR0917 - as pytest wants them
    store, make, web, event, fields, metric, own
):
    store(events=[make.declared(), make.event(event, **fields)])
    found = samples(plain((await web.get("/metrics/tools")).text))
    place = {"service": "calendar-agent", "environment": "production", **own}
    assert found[(f"toolfault_{metric}_total", *sorted(place.items()))].value == 1


async def test_a_new_error_group_and_a_waiting_dead_letter_are_counted(store, make, web):
    letter = make.event(names.DEAD_LETTER, label="book_meeting", trace_id=bytes(15) + b"1")
    store([make.call()], [make.declared(), letter])
    found = samples(plain((await web.get("/metrics/tools")).text))
    assert found[("toolfault_error_groups_new_total", *labels(code="INTERNAL"))].value == 1
    assert found[("toolfault_dead_letters_waiting", *labels())].value == 1


async def test_own_metrics_come_from_the_registry_and_the_store(browse):
    registry = CollectorRegistry()
    Counter("toolfault_ingest_records", "Records.", registry=registry).inc(3)
    found = samples(
        openmetrics((await browse(registry=registry).get("/metrics", headers=OPENMETRICS)).text)
    )
    assert found[("toolfault_ingest_records_total",)].value == 3
    assert found[("toolfault_database_bytes",)].value > 1_000_000
    assert found[("toolfault_partitions_ahead",)].value == 7


async def test_names_from_agents_cannot_break_the_text_formats(store, make, web):
    hostile = 'x"} 1\n# EOF\nevil{a="\\'
    store([make.ok(tool=hostile, service=hostile)])
    for accept, parse in (("", plain), (OPENMETRICS["Accept"], openmetrics)):
        text = (await web.get("/metrics/tools", headers={"Accept": accept})).text
        counted = [
            s for s in samples(parse(text)).values() if s.name == "toolfault_tool_calls_total"
        ]
        assert [sample.labels["tool"] for sample in counted] == [hostile]

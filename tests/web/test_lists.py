"""Lists, groups, tools and what people change, over HTTP."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from toolfault import conventions as names

PAGES = ("/", "/errors", "/groups", "/tools", "/health", "/sign-in")
OWN = {"Origin": "http://127.0.0.1:8700"}


def alert(**fields):
    body = {
        "status": "firing",
        "labels": {
            "alertname": "ToolfaultInternal",
            "service": "calendar-agent",
            "tool": "book_meeting",
        },
        "annotations": {"summary": "INTERNAL above its usual level"},
        "startsAt": "2026-11-30T14:02:00.123456789Z",
        "endsAt": "0001-01-01T00:00:00Z",
        "fingerprint": "f1",
        "generatorURL": "http://prometheus/graph",
    }
    return {**body, **fields}


def webhook(*alerts):
    return {
        "version": "4",
        "groupKey": "{}",
        "status": "firing",
        "receiver": "toolfault",
        "alerts": [*alerts],
    }


async def references(web, **query):
    body = (await web.get("/api/v1/errors", params=query)).json()
    return [item["reference"] for item in body["items"]]


async def test_errors_come_newest_arrival_first_and_pages_join_without_a_gap(store, make, web):
    now = datetime.now(UTC)
    calls = [make.call(received_at=now - timedelta(seconds=i // 2)) for i in range(7)]
    store(calls)
    seen, cursor = [], None
    while True:
        query = {"size": 3, **({"cursor": cursor} if cursor else {})}
        page = (await web.get("/api/v1/errors", params=query)).json()
        seen += [item["reference"] for item in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert len(seen) == 7
    assert set(seen) == {call.reference_id for call in calls}
    assert seen[-1] == calls[6].reference_id


@pytest.mark.parametrize(
    "query",
    [
        {"tool": "cancel_booking"},
        {"code": "CONFLICT"},
        {"outcome": "declined"},
        {"reason": "not_cancellable"},
        {"service": "travel-agent"},
        {"environment": "staging"},
        {"conversation": "c-other"},
        {"group": "ff"},
        {"tool": ["cancel_booking", "nothing"]},
    ],
)
async def test_every_filter_narrows(store, make, web, query):
    wanted = make.call(
        tool="cancel_booking",
        code="CONFLICT",
        outcome="declined",
        reason="not_cancellable",
        service="travel-agent",
        environment="staging",
        conversation_id="c-other",
        fingerprint=b"\xff",
    )
    store([make.call(), wanted])
    assert await references(web, **query) == [wanted.reference_id]


async def test_time_filters_go_by_arrival(store, make, web):
    now = datetime.now(UTC)
    old = make.call(started_at=now - timedelta(hours=3), received_at=now - timedelta(hours=2))
    new = make.call(started_at=now - timedelta(hours=3), received_at=now)
    store([old, new])
    cut = (now - timedelta(hours=1)).isoformat()
    assert await references(web, since=cut) == [new.reference_id]
    assert await references(web, until=cut) == [old.reference_id]


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-23:59"])
@pytest.mark.parametrize("path", ["/errors", "/api/v1/errors"])
async def test_a_moment_at_the_edge_of_the_calendar_is_a_bound_like_any_other(web, path, at):
    response = await web.get(path, params={"since": at, "until": at})
    assert response.status_code == 200


@pytest.mark.parametrize(
    "query",
    [
        "cursor=nonsense",
        "cursor=WzFd",
        "code=WRONG",
        "size=0",
        "since=yesterday",
        "trace=xyz",
        "tool=%00",
    ],
)
async def test_wrong_filters_are_refused_with_a_sentence(web, query):
    response = await web.get(f"/api/v1/errors?{query}")
    assert response.status_code == 422
    assert response.headers["content-type"] == "application/problem+json"
    page = await web.get(f"/errors?{query}")
    assert page.status_code in (200, 422)


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("errors", "tols=leak"),
        ("errors", "limit=2"),
        ("errors", "tool=book_meeting&filters=x"),
        ("groups", "sort=first"),
        ("tools", "tool=leak"),
        ("dead-letters", "limit=2"),
        ("audit", "cursor=x"),
    ],
)
async def test_a_parameter_that_a_list_does_not_have_is_refused_by_name(web, path, query):
    response = await web.get(f"/api/v1/{path}?{query}")
    name = query.split("&")[-1].split("=")[0]
    assert response.status_code == 422
    assert response.json()["errors"] == [
        {"field": name, "problem": "This list has no such parameter."}
    ]
    assert f"{name}: This list has no such parameter." in response.json()["detail"]


async def test_links_to_pages_may_carry_more(web):
    for path in ("/errors?utm=x", "/groups?utm=x", "/tools?utm=x"):
        assert (await web.get(path)).status_code == 200


async def test_a_page_names_the_filter_that_is_not_accepted(web):
    for path in ("/errors?code=WRONG", "/groups?code=WRONG"):
        page = await web.get(path)
        assert page.status_code == 422
        assert "code: Give " in page.text


@pytest.mark.parametrize("fingerprint", ["nope", "ab" * 16, "ABC"])
async def test_a_group_that_is_not_there_is_told_on_its_page(web, fingerprint):
    page = await web.get(f"/groups/{fingerprint}")
    assert page.status_code == 404
    assert "There is no such group." in page.text


@pytest.mark.parametrize(
    ("query", "field", "told"),
    [
        ("since=yesterday", "since", "Give a time with its zone, as in 2026-11-30T14:00:00Z."),
        ("since=2026-11-30T14:00:00", "since", "Give a time with its zone, as in 2026-11-30T14:00:00Z."),
        ("outcome=lost", "outcome", "Give 'ok', 'failed', 'timed_out', 'declined', 'refused', "
         "'invalid', 'not_found' or 'cancelled'."),
        ("size=0", "size", "Give a number within the bounds of the description."),
        ("trace=xyz", "trace", "It does not have the form this field wants."),
    ],
)  # fmt: skip
async def test_a_wrong_filter_is_told_what_would_be_right(web, query, field, told):
    problem = (await web.get(f"/api/v1/errors?{query}")).json()
    assert problem["errors"] == [{"field": field, "problem": told}]
    assert problem["detail"] == f"A value is not accepted. {field}: {told}"


async def test_a_group_shows_its_calls_samples_and_conversations(store, make, web):
    now = datetime.now(UTC)
    first = make.call(started_at=now - timedelta(hours=2), version="2.13.4", effect="none")
    second = make.call(conversation_id="c-2", attempts=3)
    store([first, second])
    fingerprint = first.fingerprint.hex()
    listed = (await web.get("/api/v1/groups")).json()["items"]
    assert [(one["fingerprint"], one["calls"], one["status"]) for one in listed] == [
        (fingerprint, 2, "open")
    ]
    group = (await web.get(f"/api/v1/groups/{fingerprint}")).json()
    assert (group["conversations"], group["unsure"], group["nothing"]) == (2, 1, 1)
    assert group["first_version"] == "2.13.4"
    assert {one["reference"] for one in group["samples"]} == {
        first.reference_id,
        second.reference_id,
    }
    assert [one["conversation_id"] for one in group["affected"]] == ["c-2", "c-1"]
    page = await web.get(f"/groups/{fingerprint}")
    assert "KeyError in calendar_tools.google:parse_event" in page.text


async def test_a_group_is_resolved_and_a_new_version_opens_it_again(store, make, web):
    call = make.call()
    store([call])
    path = f"/api/v1/groups/{call.fingerprint.hex()}"
    changed = await web.patch(path, json={"status": "resolved"})
    assert (changed.status_code, changed.json()["status"]) == (200, "resolved")
    store([make.call(version="2.15.0")])
    assert (await web.get(path)).json()["status"] == "open"


async def test_an_unknown_status_or_group_is_refused(web):
    assert (await web.patch("/api/v1/groups/ff", json={"status": "closed"})).status_code == 422
    assert (await web.patch("/api/v1/groups/ff", json={"status": "muted"})).status_code == 404
    assert (await web.get("/api/v1/groups/zz")).status_code == 422
    assert (await web.get("/groups/ff")).status_code == 404


async def test_the_status_form_works_without_script_from_our_own_page_only(store, make, web):
    call = make.call()
    store([call])
    path = f"/groups/{call.fingerprint.hex()}"
    page = await web.get(path)
    assert f'action="{path}/status" method="post"' in page.text
    form = {"status": "muted"}
    for foreign in (
        {},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {**OWN, "Sec-Fetch-Site": "cross-site"},
    ):
        assert (await web.post(f"{path}/status", data=form, headers=foreign)).status_code == 403
    done = await web.post(f"{path}/status", data=form, headers=OWN)
    assert (done.status_code, done.headers["location"]) == (303, path)
    assert (await web.get(f"/api/v1{path}")).json()["status"] == "muted"


async def test_tools_say_what_they_declared_and_pages_join(store, make, web):
    store(events=[make.declared(tool) for tool in ("a_tool", "b_tool", "c_tool")])
    first = (await web.get("/api/v1/tools", params={"size": 2})).json()
    rest = (await web.get("/api/v1/tools", params={"size": 2, "cursor": first["next"]})).json()
    assert [one["tool"] for one in first["items"] + rest["items"]] == ["a_tool", "b_tool", "c_tool"]
    assert rest["next"] is None
    assert first["items"][0]["reasons"] == {"unmapped_failure": "Our calendar had a fault"}


async def test_a_tool_page_shows_reasons_and_the_fields_models_get_wrong(store, make, web):
    invalid = make.call(
        outcome="invalid",
        code="INVALID_ARGUMENT",
        reason="bad_date",
        attributes={names.FIELD: "date"},
    )
    store([make.call(), invalid], [make.declared()])
    page = (await web.get("/tools/book_meeting")).text
    for text in (
        "unmapped_failure",
        "bad_date",
        "<code>date</code>",
        "Calendar tools",
        "not safe to repeat",
    ):
        assert text in page
    assert (await web.get("/tools/nothing")).status_code == 404


def wrong_argument(make, field, **fields):
    """A call that did not run because of one argument."""
    invalid = {"outcome": "invalid", "code": "INVALID_ARGUMENT", "reason": "date_not_iso"}
    return make.call(**invalid | fields, attributes={names.FIELD: field} if field else {})


async def test_a_list_of_invalid_arguments_names_the_fields_as_the_card_does(store, make, web):
    calls = [wrong_argument(make, "attendees.0.email"), wrong_argument(make, None)]
    store(calls)
    listed = (await web.get("/api/v1/errors", params={"code": "INVALID_ARGUMENT"})).json()["items"]
    fields = {one["reference"]: one["field"] for one in listed}
    assert fields == {calls[0].reference_id: "attendees.0.email", calls[1].reference_id: None}
    card = (await web.get(f"/api/v1/references/{calls[0].reference_id}")).json()["matches"][0]
    assert card["field"] == "attendees.0.email"
    page = (await web.get("/errors?code=INVALID_ARGUMENT")).text
    assert page.count('<code class="reason" title=') == 1
    assert '<code class="reason" title="attendees.0.email">attendees.0.email</code>' in page


async def test_a_list_of_refused_calls_says_the_reasons(store, make, web):
    store([make.call(outcome="refused", code="PERMISSION_DENIED", reason="quota_of_the_tenant")])
    page = (await web.get("/errors?outcome=refused")).text
    assert ">quota_of_the_tenant<" in page
    (listed,) = (await web.get("/api/v1/errors", params={"outcome": "refused"})).json()["items"]
    assert listed["reason"] == "quota_of_the_tenant"


async def test_a_long_field_is_cut_in_the_list_and_whole_on_the_card(store, make, web):
    long = "x" * 30 + "y" * 170
    call = wrong_argument(make, long)
    store([call])
    page = (await web.get("/errors")).text
    assert f'title="{long}">{"x" * 30}yyyyyyyyy…</code>' in page
    assert f"<code>{long}</code>" in (await web.get(f"/r/{call.reference_id}")).text


async def test_the_tool_most_unlike_itself_comes_first(store, make, web):
    now = datetime.now(UTC)
    before, lately = now - timedelta(days=2), now - timedelta(minutes=1)

    def calls(tool, ok, failed, at):
        times = {"started_at": at, "received_at": at + timedelta(seconds=5), "tool": tool}
        return [make.ok(**times) for _ in range(ok)] + [make.call(**times) for _ in range(failed)]

    store(
        [
            *calls("always_bad", 100, 100, before),
            *calls("always_bad", 10, 10, lately),
            *calls("got_worse", 199, 1, before),
            *calls("got_worse", 10, 5, lately),
        ],
        [make.declared("always_bad"), make.declared("got_worse")],
    )
    page = (await web.get("/")).text
    assert page.index("got_worse") < page.index("always_bad")
    # 5 of 15 now, 1 of 200 before: 33.3 % and 0.5 %
    assert "66.7 × usual" in page


async def test_dead_letters_wait_until_somebody_takes_them(store, make, web):
    letter = make.event(names.DEAD_LETTER, label="book_meeting", reference_id=make.reference())
    store(events=[letter])
    waiting = (await web.get("/api/v1/dead-letters")).json()["items"]
    assert [(one["tool"], one["reference"]) for one in waiting] == [
        ("book_meeting", letter.reference_id)
    ]
    path = f"/api/v1/dead-letters/{waiting[0]['id']}/ack"
    assert [(await web.post(path)).status_code for _ in range(2)] == [204, 404]
    assert (await web.get("/api/v1/dead-letters")).json()["items"] == []
    taken = (await web.get("/api/v1/dead-letters", params={"waiting": False})).json()["items"]
    assert taken[0]["acknowledged_by"] == "local"


async def test_an_alert_becomes_an_incident_on_cards_groups_and_lists(store, make, web):
    call = make.call()
    store([call])
    started = (call.started_at + timedelta(minutes=1)).isoformat()
    taken = await web.post("/api/v1/alerts", json=webhook(alert(startsAt=started)))
    assert taken.json() == {"recorded": 1}
    card = (await web.get(f"/api/v1/references/{call.reference_id}")).json()["matches"][0]
    assert card["incident"]["name"] == "ToolfaultInternal"
    assert card["words"]["incident"] == "Yes: ToolfaultInternal"
    assert (await web.get("/api/v1/errors")).json()["items"][0]["incident"][
        "name"
    ] == "ToolfaultInternal"
    assert (await web.get("/api/v1/groups")).json()["items"][0]["incident"][
        "name"
    ] == "ToolfaultInternal"
    for path in (
        "/",
        "/errors",
        "/groups",
        f"/r/{call.reference_id}",
        f"/groups/{call.fingerprint.hex()}",
    ):
        assert "ToolfaultInternal" in (await web.get(path)).text


async def test_a_resolved_alert_ends_its_incident(store, make, web):
    call = make.call(started_at=datetime.now(UTC) - timedelta(minutes=1))
    store([call])
    ended = call.started_at - timedelta(minutes=5)
    started = (ended - timedelta(minutes=10)).isoformat()
    await web.post("/api/v1/alerts", json=webhook(alert(startsAt=started)))
    await web.post(
        "/api/v1/alerts",
        json=webhook(alert(startsAt=started, status="resolved", endsAt=ended.isoformat())),
    )
    card = (await web.get(f"/api/v1/references/{call.reference_id}")).json()["matches"][0]
    assert card["incident"] is None


@pytest.mark.parametrize(
    ("lasted", "told", "badge"),
    [
        (timedelta(minutes=8), "began at 12:01 UTC on {day} and ended at 12:09.", "12:01 to 12:09"),
        (
            timedelta(seconds=20),
            "began at 12:01 UTC on {day} and lasted less than a minute.",
            "12:01, less than a minute",
        ),
        (
            timedelta(hours=12),
            "began at 12:01 UTC on {day} and ended at 00:01 UTC on {next_day}.",
            "12:01 to {short_next_day} 00:01",
        ),
    ],
)
async def test_a_call_of_an_incident_that_is_over_is_told_how_long_it_lasted(  # noqa: PLR0917 - as pytest wants them
    store, make, web, lasted, told, badge
):
    noon = (datetime.now(UTC) - timedelta(days=1)).replace(
        hour=12, minute=0, second=0, microsecond=0
    )
    call = make.call(started_at=noon, received_at=noon)
    store([call])
    started = noon + timedelta(minutes=1)
    over = alert(
        startsAt=started.isoformat(), status="resolved", endsAt=(started + lasted).isoformat()
    )
    await web.post("/api/v1/alerts", json=webhook(over))
    card = (await web.get(f"/api/v1/references/{call.reference_id}")).json()["matches"][0]
    tomorrow = noon + timedelta(days=1)
    days = {
        "day": f"{noon:%-d %B}",
        "next_day": f"{tomorrow:%-d %B}",
        "short_next_day": f"{tomorrow:%-d %b}",
    }
    assert card["words"]["incident_detail"] == f"It {told.format(**days)}"
    for path in (f"/r/{call.reference_id}", "/errors", "/groups"):
        page = (await web.get(path)).text
        assert f"{noon:%-d %b} {badge.format(**days)}</span>" in page


async def test_the_gravest_alert_comes_first_with_a_link_to_its_calls(web):
    now = datetime.now(UTC)
    for severity, minutes in (("critical", 3), ("ticket", 1)):
        fired = alert(
            fingerprint=severity,
            labels={"alertname": severity.title(), "severity": severity},
            startsAt=(now - timedelta(minutes=minutes)).isoformat(),
            annotations={"lookup_url": f"https://errors.test/errors?a={severity}&b=1"},
        )
        await web.post("/api/v1/alerts", json=webhook(fired))
    unsafe = alert(fingerprint="u", annotations={"lookup_url": "javascript:alert(1)"})
    await web.post("/api/v1/alerts", json=webhook({**unsafe, "startsAt": now.isoformat()}))
    page = (await web.get("/")).text
    assert page.index("Critical") < page.index("Ticket")
    assert '<a href="https://errors.test/errors?a=critical&amp;b=1"' in page
    assert "javascript:" not in page


@pytest.mark.parametrize(
    "labels",
    [
        {"service": "orders-agent"},
        {"service": "calendar-agent", "tool": "cancel_booking"},
        {"service": "calendar-agent", "environment": "staging"},
        {"service": "calendar-agent", "tool": "book_meeting", "code": "UNAVAILABLE"},
        {"job": "prometheus"},
        {"service": "calendar-agent", "environment": "production"},
    ],
)
async def test_an_alert_over_something_else_is_not_this_calls_incident(store, make, web, labels):
    call = make.call()
    store([call])
    started = call.started_at.isoformat()
    await web.post(
        "/api/v1/alerts",
        json=webhook(alert(startsAt=started, labels={"alertname": "Other", **labels})),
    )
    card = (await web.get(f"/api/v1/references/{call.reference_id}")).json()["matches"][0]
    assert card["incident"] is None


async def test_an_alert_over_many_tools_of_a_service_is_their_calls_incident(store, make, web):
    call = make.call()
    store([call])
    labels = {
        "alertname": "ToolfaultManyToolsFailing",
        "service": "calendar-agent",
        "code": "INTERNAL",
    }
    await web.post(
        "/api/v1/alerts", json=webhook(alert(startsAt=call.started_at.isoformat(), labels=labels))
    )
    card = (await web.get(f"/api/v1/references/{call.reference_id}")).json()["matches"][0]
    assert card["incident"]["name"] == "ToolfaultManyToolsFailing"


async def test_a_ticket_that_follows_does_not_hide_the_page(store, make, web):
    call = make.call()
    store([call])
    for minutes, severity in ((1, "critical"), (2, "ticket")):
        labels = {
            "alertname": severity,
            "severity": severity,
            "service": "calendar-agent",
            "code": "INTERNAL",
        }
        started = (call.started_at + timedelta(minutes=minutes)).isoformat()
        one = alert(startsAt=started, labels=labels, fingerprint=f"00000000000000{minutes:02}")
        await web.post("/api/v1/alerts", json=webhook(one))
    card = (await web.get(f"/api/v1/references/{call.reference_id}")).json()["matches"][0]
    assert card["incident"]["name"] == "critical"


async def test_names_that_stand_for_many_in_metrics_find_their_calls(store, make, web):
    declared, undeclared = make.call(), make.call(tool="nobody_declared")
    store([declared, undeclared], [make.declared()])
    assert await references(web, tool="__undeclared__") == [undeclared.reference_id]
    both = {declared.reference_id, undeclared.reference_id}
    assert set(await references(web, tool=["__undeclared__", "book_meeting"])) == both
    assert set(await references(web, tool="__other__", service="__other__")) == both


async def test_a_dashboards_link_to_cancelled_calls_finds_them(store, make, web):
    reference = make.reference()
    cancelled = make.call(outcome="cancelled", code=None, fingerprint=None, reference_id=reference)
    store([make.call(), cancelled])
    page = (
        await web.get("/errors?code=CANCELLED&tool=book_meeting&since=2026-01-01T00:00:00.000Z")
    ).text
    assert reference in page
    assert "unmapped_failure</a>" not in page


async def test_a_declined_call_is_never_part_of_an_incident(store, make, web):
    call = make.call(outcome="declined", code="CONFLICT", action="none", effect="none")
    store([call])
    await web.post("/api/v1/alerts", json=webhook(alert(startsAt=call.started_at.isoformat())))
    card = (await web.get(f"/api/v1/references/{call.reference_id}")).json()["matches"][0]
    assert (card["incident"], card["words"]["incident"]) == (None, "No")


async def test_what_the_store_cannot_keep_is_refused(web):
    response = await web.post("/api/v1/alerts", json=webhook(alert(labels={"alertname": "a\x00b"})))
    assert response.status_code == 422


@pytest.mark.parametrize("path", PAGES)
async def test_pages_work_before_anything_has_arrived(web, path):
    page = await web.get(path)
    assert page.status_code in (200, 303)


async def test_first_start_shows_the_lines_that_make_a_first_reference(web):
    page = (await web.get("/")).text
    assert "Nothing has arrived yet" in page
    assert "toolfault.guard(" in page


async def test_health_tells_what_was_lost(store, make, web):
    store(events=[make.declared(), make.event(names.TELEMETRY_DROPPED, amount=4321)])
    page = (await web.get("/health")).text
    assert "4,321" in page


async def test_hostile_names_are_inert_on_every_page(store, make, web):
    hostile = "<script>alert(1)</script>\"'{{7*7}}\u202e\n=cmd()"
    call = make.call(
        tool=hostile, service=hostile, reason=hostile, conversation_id=hostile, version=hostile,
        attributes={names.FIELD: hostile},
    )  # fmt: skip
    declared = make.declared(hostile)._replace(service=hostile)
    letter = make.event(names.DEAD_LETTER, label=hostile, service=hostile)
    store([call, make.ok(tool=hostile, service=hostile)], [declared, letter])
    await web.post(
        "/api/v1/alerts", json=webhook(alert(labels={"alertname": hostile, "tool": hostile}))
    )
    paths = ["/", "/errors", "/groups", "/tools", "/health", f"/groups/{call.fingerprint.hex()}"]
    for path in paths:
        page = (await web.get(path)).text
        assert page.count("<script") == 1, path
        assert "\u202e" not in page, path
        assert "[U+202E]" in page, path


async def test_the_outcome_filters_carry_counts_where_the_filters_allow_it(store, make, web):
    now = datetime.now(UTC)
    store([
        make.call(), make.call(started_at=now, received_at=now),
        make.call(outcome="timed_out", code="UNAVAILABLE"), make.call(tool="another"),
    ], [make.declared(), make.declared("another")])  # fmt: skip

    async def counts(query):
        page = (await web.get(f"/errors?{query}")).text
        return dict(re.findall(r"</svg>([a-z ]+) <b>(\d+)</b></span></label>", page))

    assert (await counts(""))["failed"] == "3"
    of_tool = await counts("tool=book_meeting&outcome=failed&period=1h")
    assert (of_tool["failed"], of_tool["timed out"], of_tool["declined"]) == ("2", "1", "0")
    assert await counts("reason=unmapped_failure") == {}

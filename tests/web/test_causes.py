"""What may have caused a group: what was released before it, and what its calls share."""

import json
from datetime import UTC, datetime, timedelta

from toolfault import conventions as names
from toolfault.web.causes import marks
from toolfault.web.listing import ReleaseItem
from toolfault.web.models import IncidentSummary

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


async def test_a_group_shows_which_version_was_released_before_it(store, make, web):
    now = datetime.now(UTC)
    call = make.call()

    def said_at(version, hours, label="book_meeting", **fields):
        at = now - timedelta(hours=hours)
        return make.event(
            names.TOOL_DECLARED,
            label=label,
            version=version,
            occurred_at=at,
            received_at=at,
            **fields,
        )

    store(
        [call],
        [
            # Processes repeat their declarations; the old version was there before.
            *(said_at(version, hours) for version, hours in [
                ("2.13.9", 169), ("2.13.9", 168), ("2.13.9", 2), ("2.14.0", 3), ("2.14.0", 2)]),
            said_at("9", 1, label="another"),
            said_at("7", 1, service="another"),
        ],
    )  # fmt: skip
    group = (await web.get(f"/api/v1/groups/{call.fingerprint.hex()}")).json()
    assert [(one["version"], one["at"][:16]) for one in group["releases"]] == [
        ("2.14.0", (now - timedelta(hours=3)).isoformat()[:16])
    ]
    page = (await web.get(f"/groups/{call.fingerprint.hex()}")).text
    assert "2.14.0</b>, which the first of these calls ran" in page
    assert f"2.14.0 released, {now - timedelta(hours=3):%H:%M}" in page
    assert "2.14.0 released" in (await web.get("/tools/book_meeting")).text


async def test_what_the_calls_of_a_group_share_is_compared_with_the_tools_other_errors(
    store, make, web
):
    model = json.dumps({names.REQUEST_MODEL: "planner-large"})
    here = [make.call(version="2.14.0", agent=f"agent-{i}")._replace(attributes=model)
            for i in range(4)]  # fmt: skip
    others = [
        make.call(version=version, fingerprint=b"fingerprint-0002")._replace(attributes=model)
        for version in ("2.14.0", "2.13.9", "2.13.9", "2.13.9")
    ]
    store([*here, *others, make.call(tool="another", version="2.14.0", fingerprint=b"third")])
    group = (await web.get(f"/api/v1/groups/{here[0].fingerprint.hex()}")).json()
    assert group["shared"] == [
        {"name": "version", "value": "2.14.0", "here": 1.0, "elsewhere": 0.25},
        {"name": "environment", "value": "production", "here": 1.0, "elsewhere": 1.0},
        {"name": "model", "value": "planner-large", "here": 1.0, "elsewhere": 1.0},
    ]
    assert "planner-large" in (await web.get(f"/groups/{here[0].fingerprint.hex()}")).text


def test_releases_and_the_alert_are_marked_where_they_happened():
    first = NOON - timedelta(hours=48)
    release = ReleaseItem(service="s", version="2.14.0", at=NOON - timedelta(hours=12))
    before = ReleaseItem(service="s", version="2.13.9", at=NOON - timedelta(hours=49))
    alert = IncidentSummary(
        name="a", summary=None, runbook=None, since=NOON - timedelta(hours=6), until=None
    )
    assert marks([release, before], alert, first, timedelta(hours=48)) == [
        (75.0, "2.14.0 released, 00:00"),
        (87.5, "alert, 06:00"),
    ]

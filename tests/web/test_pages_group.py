"""The page of one group."""

from datetime import UTC, datetime, timedelta

from tests.web.test_pages_tool import table

from toolfault import conventions as names
from toolfault.store.tokens import Role, create_token

OWN = {"Origin": "http://127.0.0.1:8700"}


def page_of(call):
    return f"/groups/{call.fingerprint.hex()}"


async def test_conversations_tell_what_they_did_afterwards_the_doubles_first(store, make, web):
    at = datetime.now(UTC) - timedelta(minutes=30)
    quiet = make.call(conversation_id="c-quiet", started_at=at + timedelta(minutes=1))
    store([
        quiet,
        make.call(conversation_id="c-twice", started_at=at),
        make.ok(conversation_id="c-twice", started_at=at + timedelta(minutes=2)),
        make.call(conversation_id="c-safe", effect="none", started_at=at),
        make.ok(conversation_id="c-safe", tool="get_order", started_at=at + timedelta(minutes=2)),
    ])  # fmt: skip

    rows = await table(web, "Affected conversations", page_of(quiet))

    assert [row[:1] + row[2:5] for row in rows] == [
        ["c-twice", "1", "1 perhaps twice", "called book_meeting again: ok"],
        ["c-quiet", "1", "1", "no call since"],
        ["c-safe", "1", "0", "went on with get_order: ok"],
    ]
    assert (
        "Of 3 conversations, 1 called book_meeting again." in (await web.get(page_of(quiet))).text
    )


async def test_one_conversation_is_counted_as_one(store, make, web):
    call = make.call(started_at=datetime.now(UTC) - timedelta(minutes=30))
    store([call, make.ok(started_at=datetime.now(UTC) - timedelta(minutes=20))])
    page = (await web.get(page_of(call))).text
    assert "Of 1 conversation, 1 called book_meeting again." in page


async def test_the_exception_of_a_sample_is_for_engineers(store, make, browse, engine):
    call = make.call()
    detail = make.log_of(
        call, names.EXCEPTION, exception_type="KeyError", body="'dateTime'", stacktrace="in parse"
    )
    store([call], [make.declared()], [detail])

    async def page_for(role):
        _, secret = create_token(engine, role, [role])
        headers = {"Authorization": f"Bearer {secret}"}
        return (await browse(is_open=False).get(page_of(call), headers=headers)).text

    engineers, supports = await page_for(Role.ENGINEER), await page_for(Role.SUPPORT)
    assert "dateTime" in engineers
    assert "in parse" in engineers
    assert "dateTime" not in supports
    assert "What it said is for engineers." in supports


async def test_the_history_tells_what_happened_newest_first(store, make, web):
    call = make.call(started_at=datetime.now(UTC) - timedelta(minutes=50))
    store([call])
    fired = {
        "status": "firing", "fingerprint": "f1", "endsAt": "0001-01-01T00:00:00Z",
        "labels": {"alertname": "ToolfaultInternal", "tool": "book_meeting"}, "annotations": {},
        "startsAt": (call.started_at + timedelta(minutes=5)).isoformat(),
    }  # fmt: skip
    await web.post("/api/v1/alerts", json={"alerts": [fired]})
    await web.post(f"{page_of(call)}/status", data={"status": "resolved"}, headers=OWN)

    page = (await web.get(page_of(call))).text
    history = page[page.index('id="h-log"') :]

    told = ["Resolved", "ToolfaultInternal fired", "First call, in version 2.14.0"]
    assert sorted(told, key=history.index) == told


async def test_a_group_tells_its_share_of_its_tools_calls(store, make, web):
    now = datetime.now(UTC)
    call = make.call(started_at=now, received_at=now)
    store([call, *(make.ok(started_at=now, received_at=now) for _ in range(3))], [make.declared()])

    assert "<dd>25.0 %</dd><dd>of book_meeting" in (await web.get(page_of(call))).text


async def test_a_new_group_and_one_that_came_back_are_marked_in_the_lists(store, make, web):
    long_ago = datetime.now(UTC) - timedelta(days=3)
    again = make.call(fingerprint=b"again", started_at=long_ago, received_at=long_ago)
    store([again, make.call(fingerprint=b"new")])
    await web.patch(f"/api/v1{page_of(again)}", json={"status": "resolved"})
    store([make.call(fingerprint=b"again", version="2.15.0")])

    page = (await web.get("/groups")).text

    for fingerprint, tag in ((b"again", "back again"), (b"new", "new")):
        row = page[page.index(f"/groups/{fingerprint.hex()}") :]
        assert f'<span class="tag new">{tag}</span>' in row[: row.index("</th>")]


async def test_the_way_back_leads_through_the_pages_passed(store, make, web):
    now = datetime.now(UTC)
    store([make.call(received_at=now - timedelta(seconds=i)) for i in range(130)])

    async def turn(path, name):
        page = (await web.get(path)).text
        end = page.index(f">{name}</a>")
        return page[page.rindex('href="', 0, end) + 6 : end].split('"')[0].replace("&amp;", "&")

    second = await turn("/errors?tool=book_meeting", "Older")
    third = await turn(second, "Older")
    fourth = await turn(third, "Older")

    assert await turn(fourth, "Newer") == third
    assert await turn(third, "Newer") == second
    assert ">Newer<" not in (await web.get(second)).text
    assert await turn(fourth, "Newest") == "/errors?tool=book_meeting"


async def test_the_version_that_began_it_is_known_after_its_calls_are_deleted(
    store, make, web, engine
):
    long_ago = datetime.now(UTC) - timedelta(days=3)
    store([make.call(version="2.15.0", started_at=long_ago, received_at=long_ago)])
    later = make.call(version="2.13.9")
    store([later])
    began = (await web.get(f"/api/v1{page_of(later)}")).json()["first_version"]
    with engine.connect() as conn:
        conn.exec_driver_sql("DELETE FROM tool_call WHERE version = '2.15.0'")

    remembered = (await web.get(f"/api/v1{page_of(later)}")).json()["first_version"]

    assert (began, remembered) == ("2.15.0", "2.15.0")

"""Dead letters: listed, shown with what their replay needs, taken off the list."""

from toolfault import conventions as names
from toolfault.store.tokens import Role, create_token

OWN = {"Origin": "http://127.0.0.1:8700"}
KEPT = {
    names.RUN_ID: "r-1",
    names.CODE: "UNAVAILABLE",
    names.REASON: "upstream_unavailable",
    names.PAYLOAD: {"order_id": "A-1042", "note": "<b>\u202ex</b>"},
}


async def only(web, **params):
    (item,) = (await web.get("/api/v1/dead-letters", params=params)).json()["items"]
    return item


async def test_one_letter_has_the_payload_and_the_list_has_not(store, make, web):
    letter = make.event(names.DEAD_LETTER, label="refund_order", attributes=KEPT)
    store(events=[letter])
    item = await only(web)

    found = (await web.get(f"/api/v1/dead-letters/{item['id']}")).json()

    assert "payload" not in item
    assert {key: found[key] for key in item} == item
    assert (found["payload"], found["run_id"]) == (KEPT[names.PAYLOAD], "r-1")
    assert (found["code"], found["reason"]) == ("UNAVAILABLE", "upstream_unavailable")


async def test_the_list_is_narrowed_by_service_and_tool(store, make, web):
    places = [("a", "t"), ("a", "u"), ("b", "t")]
    store(events=[make.event(names.DEAD_LETTER, service=s, label=t) for s, t in places])

    assert (await only(web, service="a", tool="u"))["tool"] == "u"
    assert (await only(web, service="b"))["service"] == "b"
    assert len((await web.get("/api/v1/dead-letters", params={"tool": "t"})).json()["items"]) == 2


async def test_what_is_not_there_is_404_everywhere(web):
    for path in ("/api/v1/dead-letters/ff", "/dead-letters/ff"):
        assert (await web.get(path)).status_code == 404
    assert (await web.post("/api/v1/dead-letters/ff/ack")).status_code == 404


async def test_its_page_shows_the_payload_escaped_and_takes_it_off(store, make, web):
    store(events=[make.event(names.DEAD_LETTER, label="refund_order", attributes=KEPT)])
    path = f"/dead-letters/{(await only(web))['id']}"

    assert f'href="{path}"' in (await web.get("/health")).text
    page = (await web.get(path)).text
    assert "A-1042" in page
    assert "<b>" not in page
    assert "\u202e" not in page
    elsewhere = {"Origin": "https://evil.example"}
    assert (await web.post(f"{path}/ack", headers=elsewhere)).status_code == 403
    assert (await web.post(f"{path}/ack", headers=OWN)).status_code == 303
    assert "by local" in (await web.get(path)).text
    assert (await web.get("/api/v1/dead-letters")).json()["items"] == []


async def test_a_letter_without_a_payload_says_what_to_do(store, make, web):
    store(events=[make.event(names.DEAD_LETTER, label="refund_order")])
    page = (await web.get(f"/dead-letters/{(await only(web))['id']}")).text
    assert "nothing can replay it" in page


async def test_the_payload_is_for_engineers_of_its_service(store, make, browse, engine):
    store(events=[make.event(names.DEAD_LETTER, label="refund_order", attributes=KEPT)])
    guarded = browse(is_open=False)

    async def status(role, services=None):
        _, secret = create_token(engine, "somebody", [role], services)
        headers = {"Authorization": f"Bearer {secret}"}
        if not services:
            items = (await guarded.get("/api/v1/dead-letters", headers=headers)).json()["items"]
            ids.update(item["id"] for item in items)
        (letter,) = ids
        return (await guarded.get(f"/api/v1/dead-letters/{letter}", headers=headers)).status_code

    ids = set()
    assert await status(Role.SUPPORT) == 403
    assert await status(Role.ENGINEER) == 200
    assert await status(Role.ENGINEER, ["another-agent"]) == 404

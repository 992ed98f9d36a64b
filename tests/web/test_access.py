"""Tokens, roles, sessions, and what keeps strangers out."""

import asyncio
import socket

import pytest
import uvicorn

from toolfault import conventions as names
from toolfault.connections import TimedProtocol
from toolfault.store.tokens import Role, create_token, revoke_token
from toolfault.web.access import Limit
from toolfault.web.guard import Guard

OWN = {"Origin": "http://127.0.0.1:8700"}


@pytest.fixture
def guarded(browse):
    """A client of the application as it is when bound elsewhere: tokens only."""
    return browse(is_open=False)


@pytest.fixture
def token(engine):
    """Makes the header of a new token."""

    def made(*roles, services=None):
        _, secret = create_token(engine, "somebody", roles, services)
        return {"Authorization": f"Bearer {secret}"}

    return made


ROUTES = [
    ("GET", "/api/v1/references/x", Role.SUPPORT),
    ("GET", "/api/v1/errors", Role.SUPPORT),
    ("GET", "/api/v1/groups", Role.SUPPORT),
    ("GET", "/api/v1/groups/ff", Role.SUPPORT),
    ("PATCH", "/api/v1/groups/ff", Role.ENGINEER),
    ("GET", "/api/v1/tools", Role.SUPPORT),
    ("GET", "/api/v1/dead-letters", Role.SUPPORT),
    ("GET", "/api/v1/dead-letters/ff", Role.ENGINEER),
    ("POST", "/api/v1/dead-letters/ff/ack", Role.ENGINEER),
    ("GET", "/dead-letters/ff", Role.ENGINEER),
    ("POST", "/api/v1/alerts", Role.SCRAPE),
    ("GET", "/api/v1/audit", Role.ADMIN),
    ("GET", "/metrics", Role.SCRAPE),
    ("GET", "/metrics/tools", Role.SCRAPE),
    ("GET", "/", Role.SUPPORT),
    ("GET", "/look?q=x", Role.SUPPORT),
    ("GET", "/r/x", Role.SUPPORT),
    ("GET", "/errors", Role.SUPPORT),
    ("GET", "/groups", Role.SUPPORT),
    ("GET", "/groups/ff", Role.SUPPORT),
    ("GET", "/tools", Role.SUPPORT),
    ("GET", "/tools/x", Role.SUPPORT),
    ("GET", "/health", Role.SUPPORT),
]
INCLUDED = {
    Role.INGEST: {Role.INGEST},
    Role.SCRAPE: {Role.SCRAPE},
    Role.SUPPORT: {Role.SUPPORT},
    Role.ENGINEER: {Role.ENGINEER, Role.SUPPORT},
    Role.ADMIN: {Role.ADMIN, Role.ENGINEER, Role.SUPPORT, Role.SCRAPE},
}
BODIES = {"PATCH": {"status": "open"}, "POST": {"alerts": []}}


@pytest.mark.parametrize(("method", "path", "role"), ROUTES)
async def test_each_route_wants_its_role(guarded, token, method, path, role):
    body = BODIES.get(method)
    assert (await guarded.request(method, path, json=body)).status_code == 401
    for granted in Role:
        response = await guarded.request(method, path, json=body, headers=token(granted))
        assert (response.status_code == 403) == (role not in INCLUDED[granted]), granted


async def test_liveness_and_readiness_want_no_token(guarded):
    assert (await guarded.get("/healthz")).status_code == 200
    assert (await guarded.get("/readyz")).status_code == 200


async def test_a_refusal_is_problem_details_for_programs_and_a_form_for_people(guarded):
    program = await guarded.get("/api/v1/errors")
    assert (program.headers["content-type"], program.headers["www-authenticate"]) == (
        "application/problem+json",
        "Bearer",
    )
    person = await guarded.get("/errors")
    assert 'action="/sign-in" method="post"' in person.text
    assert 'value="/errors"' in person.text


async def test_a_revoked_token_is_refused_at_once(guarded, engine):
    made, secret = create_token(engine, "somebody", [Role.SUPPORT])
    headers = {"Authorization": f"Bearer {secret}"}
    assert (await guarded.get("/errors", headers=headers)).status_code == 200
    assert revoke_token(engine, made.id)
    assert (await guarded.get("/errors", headers=headers)).status_code == 401


async def test_a_token_becomes_a_session_no_script_and_no_other_site_can_use(guarded, token):
    secret = token(Role.SUPPORT)["Authorization"].removeprefix("Bearer ")
    signed_in = await guarded.post(
        "/sign-in", data={"token": secret, "next": "/errors"}, headers=OWN
    )
    assert (signed_in.status_code, signed_in.headers["location"]) == (303, "/errors")
    cookie = signed_in.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    page = await guarded.get("/errors")
    assert page.status_code == 200
    assert "Sign out somebody" in page.text
    await guarded.post("/sign-out", headers=OWN)
    assert (await guarded.get("/errors")).status_code == 401


async def test_signing_in_leads_back_to_all_of_the_address_after_a_wrong_token_too(guarded, token):
    asked = "/errors?tool=rm%2Bx+y&code=INTERNAL"
    page = (await guarded.get(asked)).text
    assert 'name="next" value="/errors?tool=rm%2Bx+y&amp;code=INTERNAL"' in page
    wrong = await guarded.post("/sign-in", data={"token": "no", "next": asked}, headers=OWN)
    assert wrong.status_code == 401
    assert "This token is not valid, or was revoked." in wrong.text
    assert 'name="next" value="/errors?tool=rm%2Bx+y&amp;code=INTERNAL"' in wrong.text
    secret = token(Role.SUPPORT)["Authorization"].removeprefix("Bearer ")
    signed_in = await guarded.post("/sign-in", data={"token": secret, "next": asked}, headers=OWN)
    assert signed_in.headers["location"] == asked


async def test_a_link_on_another_site_is_asked_again_with_the_session(guarded):
    from_a_chat = await guarded.get("/errors", headers={"Sec-Fetch-Site": "cross-site"})
    assert (from_a_chat.status_code, from_a_chat.headers["refresh"]) == (401, "0")
    by_itself = await guarded.get("/errors", headers={"Sec-Fetch-Site": "same-origin"})
    assert (by_itself.status_code, "refresh" in by_itself.headers) == (401, False)


async def test_over_tls_the_session_never_travels_in_the_clear(browse, token):
    web = browse(is_open=False, base_url="https://faults.example.com")
    secret = token(Role.SUPPORT)["Authorization"].removeprefix("Bearer ")
    signed_in = await web.post("/sign-in", data={"token": secret}, headers=OWN)
    assert "; Secure" in signed_in.headers["set-cookie"]


@pytest.mark.parametrize(
    "path", ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)", ""]
)
async def test_signing_in_leads_nowhere_else(guarded, token, path):
    secret = token(Role.SUPPORT)["Authorization"].removeprefix("Bearer ")
    signed_in = await guarded.post("/sign-in", data={"token": secret, "next": path}, headers=OWN)
    assert signed_in.headers["location"] == "/"


async def test_signing_in_from_another_site_is_refused(guarded, token):
    secret = token(Role.SUPPORT)["Authorization"].removeprefix("Bearer ")
    foreign = {"Origin": "https://evil.example"}
    assert (
        await guarded.post("/sign-in", data={"token": secret}, headers=foreign)
    ).status_code == 403


async def first_refusal(client, paths, headers=None):
    """The first answer that says to wait; allowances grow back while a slow machine asks."""
    for path in paths:
        response = await client.get(path, headers=headers)
        if response.status_code == 429:
            return response
    return None


async def test_wrong_tokens_are_slowed_down(guarded):
    wrong = {"Authorization": "Bearer tft_" + "0" * 32 + "_guess"}
    refusal = await first_refusal(guarded, ["/api/v1/errors"] * 100, wrong)
    assert int(refusal.headers["retry-after"]) >= 1


async def test_guessing_references_is_slowed_down_and_finding_is_not(store, make, web):
    call = make.call()
    store([call])
    path = f"/api/v1/references/{call.reference_id}"
    assert {(await web.get(path)).status_code for _ in range(70)} == {200}
    guesses = [f"/api/v1/references/guess{number}" for number in range(600)]
    refusal = await first_refusal(web, guesses)
    assert int(refusal.headers["retry-after"]) >= 1


def test_a_limit_lets_a_burst_through_and_then_one_at_a_time():
    now = 0.0
    limit = Limit(per_minute=6, callers=2, clock=lambda: now)
    for _ in range(6):
        assert limit.wait("anna") == 0
        limit.count("anna")
    assert (limit.wait("anna"), limit.wait("ben")) == (10, 0)
    now = 4.0
    assert limit.wait("anna") == pytest.approx(6)
    now = 10.0
    assert limit.wait("anna") == pytest.approx(0)
    limit.count("anna")
    assert limit.wait("anna") == pytest.approx(10)
    limit.count("ben")
    limit.count("cleo")
    assert limit.wait("anna") == 0, "the oldest caller is forgotten"


async def test_support_sees_the_card_without_exception_detail(store, make, guarded, token):
    call = make.call()
    detail = make.log_of(call, names.EXCEPTION, body="'conferenceData'", stacktrace="Traceback ...")
    store([call], logs=[detail, make.log_of(call, names.LOG, body="POST events")])
    path = f"/api/v1/references/{call.reference_id}"
    support = await guarded.get(path, headers=token(Role.SUPPORT))
    engineer = await guarded.get(path, headers=token(Role.ENGINEER))
    assert "conferenceData" not in support.text
    assert "POST events" not in support.text
    assert "conferenceData" in engineer.text
    page = await guarded.get(f"/r/{call.reference_id}", headers=token(Role.SUPPORT))
    assert "for engineers" in page.text
    assert "conferenceData" not in page.text


async def test_out_of_scope_is_exactly_as_if_it_were_not_stored(store, make, guarded, token):
    reader = token(Role.ADMIN, services=["orders-agent"])
    mine = make.call(
        service="orders-agent", tool="get_order", fingerprint=b"mine", conversation_id="c-1"
    )
    call = make.call()
    typo = call.reference_id[:-1] + ("0" if call.reference_id[-1] != "0" else "1")
    fingerprint = call.fingerprint.hex()
    paths = [
        f"/api/v1/references/{call.reference_id}",
        f"/api/v1/references/{typo}",
        f"/api/v1/references/{mine.reference_id}",
        "/api/v1/errors",
        "/api/v1/errors?conversation=c-1",
        "/api/v1/groups",
        f"/api/v1/groups/{fingerprint}",
        "/api/v1/tools",
        "/api/v1/dead-letters",
    ]
    changing = [("PATCH", f"/api/v1/groups/{fingerprint}", {"status": "muted"})]

    async def seen():
        read = [await guarded.get(path, headers=reader) for path in paths]
        changed = [await guarded.request(m, p, json=b, headers=reader) for m, p, b in changing]
        return [(answer.status_code, answer.json()) for answer in [*read, *changed]]

    store([mine])
    before = await seen()
    store(
        [call],
        [make.declared(), make.event(names.DEAD_LETTER, label="book_meeting")],
        [make.log_of(call, names.EXCEPTION, body="secret")],
    )
    assert await seen() == before
    for path in ("/", "/errors", "/groups", "/tools", "/health", f"/r/{call.reference_id}"):
        assert "book_meeting" not in (await guarded.get(path, headers=reader)).text, path


async def test_the_audit_names_the_token(guarded, token, engine):
    await guarded.get("/api/v1/references/938N-KRKA-S18Q", headers=token(Role.SUPPORT))
    audit = (await guarded.get("/api/v1/audit", headers=token(Role.ADMIN))).json()["items"]
    assert [(one["token"], one["asked"], one["state"]) for one in audit] == [
        ("somebody", "938N-KRKA-S18Q", "mistyped")
    ]


async def test_an_open_service_answers_only_to_names_of_its_own_machine(web, browse):
    for foreign in ("evil.example:8700", "127.0.0.1.evil.example", "192.0.2.1", ""):
        answer = await web.get("/api/v1/errors", headers={"Host": foreign})
        assert answer.status_code == 421
    for own in ("localhost:8700", "127.0.0.1", "127.9.9.7:28700", "[::1]:8700"):
        answer = await web.get("/api/v1/errors", headers={"Host": own})
        assert answer.status_code == 200
    named = browse(base_url="https://faults.example.com")
    assert (
        await named.get("/api/v1/errors", headers={"Host": "faults.example.com"})
    ).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}],
)
async def test_another_sites_page_changes_nothing(web, headers):
    for path in ("/api/v1/alerts", "/api/v1/dead-letters/ff/ack", "/groups/ff/status"):
        assert (await web.post(path, json={"alerts": []}, headers=headers)).status_code == 403


async def test_large_bodies_are_refused(web):
    body = b"x" * (1024 * 1024 + 1)
    assert (await web.post("/api/v1/alerts", content=body)).status_code == 413

    async def chunks():
        for _ in range(20):
            yield b"x" * 65536

    assert (await web.post("/api/v1/alerts", content=chunks())).status_code == 413


@pytest.mark.parametrize(
    ("header", "status"),
    [("Host: 127.0.0.1", 413), ("Host: 127.0.0.1\r\nOrigin: null", 403), ("Host: evil.example", 421)],
)  # fmt: skip
async def test_whoever_sends_a_large_body_hears_why_it_is_refused(header, status):
    """Over a real connection: closing it with a body still coming would take the answer with it."""

    async def never(*_):
        raise AssertionError

    app = Guard(never, is_open=True, base_url=None)
    server = uvicorn.Server(
        uvicorn.Config(app, http=TimedProtocol, log_config=None, lifespan="off")
    )
    size = 32 * 1024 * 1024
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = asyncio.create_task(server._serve([listener]))
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        head = f"POST /api/v1/alerts HTTP/1.1\r\n{header}\r\nContent-Length: {size}\r\n\r\n"
        writer.write(head.encode() + bytes(size))
        await writer.drain()
        told = await reader.readline()
        writer.close()
        server.should_exit = True
        await serving
    assert told.startswith(f"HTTP/1.1 {status} ".encode())

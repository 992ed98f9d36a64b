"""The pages, as a browser without script gets them."""

import re
from datetime import timedelta
from html import unescape
from html.parser import HTMLParser

import pytest

from toolfault import conventions as names
from toolfault import reference
from toolfault.web.lookup import Links

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>{{7*7}}{% raw %}\u202eevil\u0007\x1b[31m\n=cmd()"


class Elements(HTMLParser):
    """What a browser makes of a page: its elements and attributes."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes = set(), set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)


def elements_of(page):
    elements = Elements()
    elements.feed(page)
    return elements


async def test_a_reference_in_the_words_for_the_user_is_not_broken_over_lines(store, make, web):
    call = make.call()
    store([call], [make.declared()])
    page = (await web.get(f"/r/{call.reference_id}")).text
    whole = f'<span class="nowrap">{call.reference_id}</span>'
    assert f"Your reference is {whole}." in page
    assert f"toolfault lookup {whole}" in page


async def test_an_address_that_leads_nowhere_says_so(web):
    page = await web.get("/pipeline")
    assert page.status_code == 404
    assert "Nothing is at this address." in page.text


async def test_the_card_answers_the_three_questions_and_says_what_to_tell_the_user(
    store, make, web
):
    call = make.call()
    store([call], [make.declared()])
    page = await web.get(f"/r/{call.reference_id}")
    assert page.status_code == 200
    for text in (
        "book_meeting failed because of a fault in the tool",
        "It may have",
        "Calendar tools",
        "please check before trying again",
        call.reference_id,
    ):
        assert text in page.text


@pytest.mark.parametrize(
    ("typed", "title"),
    [
        ("938N-KRKA-S18Q", "No such reference: at least one character is wrong"),
        ("hello", "Nothing is known under this reference"),
    ],
)
async def test_what_is_not_there_is_never_a_dead_end(web, typed, title):
    page = await web.get(f"/r/{typed}")
    assert page.status_code == 404
    assert title in page.text
    assert "What to do next" in page.text


async def test_what_has_not_arrived_yet_can_be_searched_for_by_tool_and_time(web):
    page = await web.get(f"/r/{reference.new()}")
    assert "its details have not arrived yet" in page.text
    assert "About when" in page.text


async def test_the_example_of_the_documentation_is_not_waited_for(web):
    page = await web.get("/r/938N-KRKA-S18P")
    assert "This is the example of the documentation" in page.text
    for waiting in ("data-again", "on their way", "looks again", "About when"):
        assert waiting not in page.text


async def test_what_came_without_a_trace_has_none_on_its_page(store, make, browse):
    call = make.call(trace_id=bytes(16))
    letter = make.event(names.DEAD_LETTER, label="book_meeting", reference_id=make.reference())
    store([call], [letter])
    web = browse(links=Links(trace="https://traces.example.com/{trace_id}"))
    card = (await web.get(f"/r/{call.reference_id}")).text
    assert '<dt>Trace</dt><dd><span class="muted">none</span>' in card
    part = (await web.get(f"/r/{letter.reference_id}")).text
    assert "without a trace" in part
    assert "00000000" not in card + part


async def test_suggestions_mark_the_differing_symbol_and_lead_on(store, make, web):
    call = make.call()
    store([call])
    last = "0" if call.reference_id[-1] != "0" else "1"
    page = await web.get(f"/r/{call.reference_id[:-1]}{last}")
    assert f"<mark>{call.reference_id[-1]}</mark>" in page.text
    assert f'href="/r/{call.reference_id}"' in page.text


async def test_search_takes_a_sentence_and_leads_to_the_card(store, make, web):
    call = make.call()
    store([call])
    found = await web.get(
        "/look", params={"q": f"he said (ref {call.reference_id}), can you look? Thanks a lot"}
    )
    assert (found.status_code, found.headers["location"]) == (303, f"/r/{call.reference_id}")


async def test_search_takes_conversation_and_trace_ids(store, make, web):
    call = make.call(conversation_id="c-58f2e1d7")
    store([call])
    by_conversation = await web.get("/look", params={"q": "c-58f2e1d7"})
    by_trace = await web.get("/look", params={"q": call.trace_id.hex()})
    assert by_conversation.headers["location"] == "/errors?conversation=c-58f2e1d7"
    assert by_trace.headers["location"] == f"/errors?trace={call.trace_id.hex()}"


async def test_hostile_text_in_every_field_is_inert(store, make, web):
    fields = (
        "tool",
        "service",
        "environment",
        "reason",
        "run_id",
        "conversation_id",
        "agent",
        "version",
    )
    attributes = dict.fromkeys(
        (names.EVIDENCE, names.USER_MESSAGE, names.FIELD, names.TOOL_CALL_ID, names.REQUEST_MODEL),
        HOSTILE,
    )
    call = make.call(
        **dict.fromkeys([*fields, "exception_type", "frame", "message"], HOSTILE),
        attributes=attributes,
    )
    declared = make.declared(
        tool=HOSTILE, **{names.OWNER: HOSTILE, names.RUNBOOK: "javascript:alert(1)"}
    )
    declared = declared._replace(service=HOSTILE, environment=HOSTILE)
    detail = make.log_of(
        call, names.EXCEPTION, exception_type=HOSTILE, body=HOSTILE, stacktrace=HOSTILE
    )
    line = make.log_of(call, names.LOG, body=HOSTILE, attributes={names.LOGGER_NAME: HOSTILE})
    store(
        [call, make.ok(tool=HOSTILE, environment=HOSTILE, conversation_id=HOSTILE)],
        [declared],
        [detail, line],
    )
    page = (await web.get(f"/r/{call.reference_id}")).text
    assert page.count("<script") == 1
    assert "<img" not in page
    assert "javascript:" not in page
    assert "{{7*7}}" in unescape(page)
    assert not set(page) & set("\u202e\u0007\x1b")
    assert "[U+202E]" in page
    assert "img" not in elements_of(page).tags
    assert not [name for name in elements_of(page).attributes if name.startswith("on")]


async def test_no_page_has_inline_style_or_script_and_all_send_the_policy(store, make, web):
    call = make.call()
    store([call], [make.declared()])
    for path in ("/", f"/r/{call.reference_id}", "/r/hello", "/nothing"):
        page = await web.get(path)
        assert "style=" not in page.text
        assert "<style" not in page.text
        assert re.findall(r"<script[^>]*>([^<]*)</script>", page.text) == [""]
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy


async def test_static_files_are_served_and_small(store, make, web):
    call = make.call()
    store([call])
    page = await web.get(f"/r/{call.reference_id}")
    paths = re.findall(r'(?:href|src)="(/static/[^"]+)"', page.text)
    sizes = [len((await web.get(path)).content) for path in paths]
    assert len(sizes) == 3
    assert sum(sizes) + len(page.content) < 100_000


async def test_several_references_in_one_text_are_answered_one_by_one(store, make, web):
    first, second = make.call(), make.call()
    store([first, second])
    text = f"(ref {first.reference_id}) and before it (ref {second.reference_id})"
    led_to = (await web.get("/look", params={"q": text})).headers["location"]
    page = (await web.get(led_to)).text
    assert f"/r/{first.reference_id}" in led_to
    assert "The text named another reference too" in page
    assert f'<a class="ref" href="/r/{second.reference_id}">' in page


async def test_only_references_are_taken_from_an_address(web):
    page = (await web.get("/r/hello", params={"also": ["<b>evil</b>", "938N-KRKA-S18P"]})).text
    assert "evil" not in page
    assert '<a class="ref" href="/r/938N-KRKA-S18P">' in page


async def test_several_calls_behind_one_reference_are_all_shown(store, make, web):
    first = make.call(reference_id="deadbeef", tool="one")
    second = make.call(
        reference_id="deadbeef", tool="two", started_at=first.started_at + timedelta(seconds=1)
    )
    store([first, second])
    page = (await web.get("/r/deadbeef")).text
    assert "2 calls carry this reference" in page
    assert page.index("two failed") < page.index("one failed")

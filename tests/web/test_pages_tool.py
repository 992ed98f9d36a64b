"""The page of one tool."""

import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser

import pytest

from toolfault import conventions as names
from toolfault.store.tokens import Role, create_token

TOOL = "/tools/book_meeting"


class Cells(HTMLParser):
    """The text of each cell of each row, by the caption of its table."""

    def __init__(self, page):
        super().__init__()
        self.tables, self.rows, self.into = {}, [], None
        self.is_cell = False
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        if tag == "tr":
            self.rows.append([])
        elif tag == "table":
            self.rows = []
        elif tag in ("th", "td"):
            self.rows[-1].append("")
            self.is_cell = True
        elif tag == "caption":
            self.into = ""

    def handle_data(self, data):
        if self.into is not None:
            self.tables[data] = self.rows
        elif self.is_cell:
            self.rows[-1][-1] += f"{data} "

    def handle_endtag(self, tag):
        if tag == "caption":
            self.into = None
        elif tag in ("th", "td"):
            self.is_cell = False


async def table(web, caption, path=TOOL):
    rows = Cells((await web.get(path)).text).tables[caption]
    return [[" ".join(cell.split()) for cell in row] for row in rows[1:]]


def invalid(make, minutes=0, **fields):
    at = datetime.now(UTC) - timedelta(minutes=minutes)
    return make.call(
        outcome="invalid", code="INVALID_ARGUMENT", action="fix_arguments", effect="none",
        attempts=0, started_at=at, received_at=at, **{"reason": "bad_date", **fields},
    )  # fmt: skip


async def test_a_reason_tells_what_came_next_in_its_conversations(store, make, web):
    at = datetime.now(UTC)
    store([
        invalid(make, 40, conversation_id="c-fixed"),
        make.ok(conversation_id="c-fixed", started_at=at - timedelta(minutes=39)),
        invalid(make, 38, conversation_id="c-not-fixed"),
        make.call(conversation_id="c-not-fixed", started_at=at - timedelta(minutes=37)),
        invalid(make, 36, conversation_id="c-went-on"),
        make.ok(conversation_id="c-went-on", tool="another", started_at=at - timedelta(minutes=35)),
        invalid(make, 34, conversation_id="c-elsewhere"),
        make.ok(conversation_id="c-elsewhere", environment="staging", started_at=at),
        invalid(make, 180, conversation_id="c-much-later"),
        make.ok(conversation_id="c-much-later", started_at=at),
        invalid(make, 1, conversation_id=None),
    ], [make.declared()])  # fmt: skip

    rows = await table(web, "Reasons this tool gave")

    assert rows[0][:7] == [
        "bad_date", "invalid", "INVALID_ARGUMENT", "fix_arguments", "6", "1 of 2", "no",
    ]  # fmt: skip
    assert rows[1][0] == "unmapped_failure"
    assert rows[1][6] == "yes"
    assert "1 of 2 followed by an ok" in (await web.get(TOOL)).text


async def test_a_field_tells_how_often_a_conversation_gets_it_wrong_again(store, make, web):
    date, guests = {names.FIELD: "date"}, {names.FIELD: "guests"}
    store([
        *(invalid(make, i, conversation_id="c-1", attributes=guests, reason="a_list") for i in range(3)),
        invalid(make, conversation_id="c-2", attributes=guests, reason="other"),
        *(invalid(make, conversation_id=f"c-{i}", attributes=date) for i in range(5)),
        invalid(make, tool="another", attributes=date),
    ])  # fmt: skip

    assert await table(web, "Fields that models get wrong") == [
        ["date", "bad_date", "5", "0 %"],
        ["guests", "a_list", "4", "50 %"],
    ]


async def test_refusals_tell_whom_and_who_said_no(store, make, web):
    refusal = {"outcome": "refused", "code": "PERMISSION_DENIED", "effect": "none", "attempts": 0}
    store([
        make.call(**refusal, reason="rejected", agent="desk", conversation_id="c-1"),
        make.call(**refusal, reason="rejected", agent="desk", conversation_id="c-1"),
        make.call(**refusal, reason="not_permitted", agent="night"),
        make.call(code="PERMISSION_DENIED", reason="token_expired"),
    ])  # fmt: skip

    assert await table(web, "Whom permission was refused") == [
        ["rejected a person said no", "desk", "2", "1"],
        ["not_permitted a policy said no", "night", "1", "1"],
    ]


async def test_attempts_and_durations_tell_whether_retries_help(store, make, web):
    store([
        *(make.ok(attempts=1, duration_us=15_000) for _ in range(6)),
        *(make.ok(attempts=2, duration_us=15_000) for _ in range(3)),
        make.call(attempts=2, duration_us=30_000),
    ], [make.declared()])  # fmt: skip

    assert await table(web, "Calls by number of attempts") == [
        ["1", "", "6", "100 %"],
        ["2", "", "4", "75 %"],
    ]
    page = (await web.get(TOOL)).text
    assert "Retries rescued 3 calls; 1 did not end well all the same." in page
    assert "1.40 on average" in page
    # half of nine calls, all between 10 and 20 ms
    assert (await table(web, "How long calls take"))[0] == ["ok", "15 ms", "20 ms", "20 ms"]


async def test_conversations_that_spent_their_budget_are_counted(store, make, web):
    spent = make.event(names.BUDGET_EXHAUSTED, label="book_meeting")
    other = make.event(names.BUDGET_EXHAUSTED, label="another")
    store([make.call()], [make.declared(), spent, other])

    page = (await web.get(TOOL)).text

    assert re.search(r"<dt>Stopped by budget</dt><dd>1</dd>", page)


@pytest.mark.parametrize("period", ["48h", "7d", "28d", "nonsense"])
async def test_the_time_shown_is_chosen_in_the_address(store, make, web, period):
    store([make.call()], [make.declared()])

    page = (await web.get(TOOL, params={"period": period})).text

    shown = period if period != "nonsense" else "48h"
    assert f'href="{TOOL}?period={shown}" aria-current="true"' in page
    assert "Calls that were not ok, a column for each" in page


async def test_what_is_out_of_scope_is_in_no_part_of_the_page(store, make, browse, engine):
    at = datetime.now(UTC)
    store([
        invalid(make, 20, conversation_id="c-1"),
        make.ok(conversation_id="c-1", service="another-agent", started_at=at),
        make.call(service="another-agent", reason="secret_reason"),
    ], [make.declared()])  # fmt: skip
    _, secret = create_token(engine, "desk", [Role.SUPPORT], services=["calendar-agent"])

    page = await browse(is_open=False).get(TOOL, headers={"Authorization": f"Bearer {secret}"})

    assert "bad_date" in page.text
    assert "none seen" in page.text
    assert "secret_reason" not in page.text
    assert "another-agent" not in page.text


async def test_a_long_list_of_tools_is_cut_and_narrowed_by_name(store, make, web):
    store([make.ok(tool=f"tool_{i:02}") for i in range(60)])

    page, narrowed = [(await web.get(path)).text for path in ("/tools", "/tools?named=ol_07")]

    assert page.count('scope="row"') == 50
    assert "10 more are not shown" in page
    assert narrowed.count('scope="row"') == 1
    assert "tool_07" in narrowed

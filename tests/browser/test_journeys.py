"""The three readers, each from where they come to what they came for."""

from playwright.sync_api import expect
from tests.end_to_end.harness import run_agent


def test_support_pastes_a_sentence_and_copies_the_words_for_the_user(opened, site):
    page = opened(site.url, permissions=["clipboard-read", "clipboard-write"])
    box = page.get_by_label("Look up a reference")
    expect(box).to_be_focused()

    box.fill(f"Hi, it told me: (ref {site.failed.lower()}). Can you help? Thanks")
    box.press("Enter")

    expect(page).to_have_url(f"{site.url}/r/{site.failed}")
    expect(page.get_by_role("heading", level=1)).to_have_text(
        "book_meeting failed because of a fault in the tool"
    )
    answers = page.locator(".answer")
    expect(answers.nth(0)).to_contain_text("It may have")
    expect(answers.nth(1)).to_contain_text("Yes: ToolfaultInternal")
    expect(answers.nth(2)).to_contain_text("Calendar tools")

    page.get_by_role("button", name="Copy this answer").click()

    expect(page.get_by_role("status")).to_have_text("Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == page.locator("#tell-1").inner_text()
    assert "please check before trying again" in copied
    assert site.failed in copied


def test_the_short_answer_and_its_button_are_seen_without_scrolling(opened, site):
    page = opened(site.url, f"/r/{site.failed}", viewport={"width": 1280, "height": 800})

    expect(page.get_by_role("button", name="Copy this answer")).to_be_in_viewport(ratio=1)


def test_on_call_goes_from_an_alerts_link_to_the_cause_and_resolves_the_group(opened, site):
    page = opened(site.url, "/errors?tool=book_meeting&code=INTERNAL")
    first = page.locator("tbody tr").first
    expect(first).to_contain_text("ToolfaultInternal")

    page.get_by_role("link", name=site.failed).click()
    expect(page.get_by_text("'dateTime'").first).to_be_visible()
    expect(page.get_by_text("calendar answered 200 without a start")).to_be_visible()
    expect(page.get_by_role("link", name="Runbook").first).to_be_visible()

    page.get_by_role("link", name="See the group").first.click()
    expect(page).to_have_url(f"{site.url}/groups/{site.group}")
    expect(page.get_by_role("heading", name="When it began")).to_be_visible()
    expect(page.get_by_role("button", name="Open")).to_have_attribute("aria-pressed", "true")

    page.get_by_role("button", name="Resolved").click()
    expect(page.get_by_role("button", name="Resolved")).to_have_attribute("aria-pressed", "true")
    page.goto(f"{site.url}/groups?status=resolved")
    expect(page.locator("tbody tr")).to_have_count(1)


def test_older_errors_are_reached_page_by_page(opened, site):
    page = opened(site.url, "/errors")
    newest = page.locator("tbody tr a.ref").all_inner_texts()

    page.get_by_role("link", name="Older").click()

    expect(page.get_by_role("link", name="Newest")).to_be_visible()
    older = page.locator("tbody tr a.ref").all_inner_texts()
    assert len(newest) == 40
    assert older
    assert not set(newest) & set(older)

    page.get_by_role("link", name="Older").click()
    expect(page.locator("tbody tr a.ref").first).not_to_have_text(older[0])
    page.get_by_role("link", name="Newer").click()
    expect(page.locator("tbody tr a.ref")).to_have_text(older)
    page.get_by_role("link", name="Newest").click()
    expect(page.locator("tbody tr a.ref")).to_have_text(newest)


def test_new_errors_wait_behind_a_link_and_never_move_the_list(opened, site):
    page = opened(site.url, "/errors")
    page.clock.install()
    rows = page.locator("[data-rows] tbody tr")
    before = rows.first.inner_text()

    page.get_by_role("button", name="Watch for new ones").click()
    site.arrive(2)
    page.clock.fast_forward(5_000)
    link = page.get_by_role("link", name="2 new, show")
    expect(link).to_be_visible()
    assert rows.first.inner_text() == before

    link.click()
    expect(rows.first).not_to_have_text(before)


def test_a_mistyped_reference_leads_to_the_right_one(opened, site):
    page = opened(site.url, f"/r/{site.mistyped}")
    expect(page.get_by_role("searchbox").first).to_have_value(site.mistyped)

    page.get_by_role("link", name=f"Open {site.failed}").click()

    expect(page).to_have_url(f"{site.url}/r/{site.failed}")


def test_a_developer_goes_from_an_empty_store_to_the_first_card(opened, empty_store):
    page = opened(empty_store["web"])
    expect(page.get_by_role("heading", name="Nothing has arrived yet")).to_be_visible()
    lines = page.get_by_label("The three lines").inner_text()
    assert "toolfault.configure" in lines

    told = run_agent("agent.py", "c-first", OTEL_EXPORTER_OTLP_ENDPOINT=empty_store["http"])
    _, _, reference = told["tool_invalid"]
    page.get_by_label("Look up a reference").fill(f"(ref {reference})")
    page.get_by_role("button", name="Look up").click()

    expect(page.get_by_role("heading", level=1)).to_have_text("tool_invalid rejected an argument")
    expect(page.get_by_label("Envelope")).to_contain_text('"action": "fix_arguments"')
    expect(page.get_by_role("heading", name="The same conversation")).to_be_visible()


def test_a_token_becomes_a_session_and_the_session_ends(opened, guarded):
    page = opened(guarded.url, f"/r/{guarded.reference}")

    page.get_by_label("Token").fill(guarded.secret)
    page.get_by_role("button", name="Sign in").click()
    expect(page).to_have_url(f"{guarded.url}/r/{guarded.reference}")
    expect(page.get_by_role("heading", level=1)).to_contain_text("book_meeting failed")
    expect(page.get_by_text("are for engineers")).to_be_visible()

    page.get_by_role("button", name="Sign out").click()
    page.goto(f"{guarded.url}/")
    expect(page.get_by_label("Token")).to_be_visible()

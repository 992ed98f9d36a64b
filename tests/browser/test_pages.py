"""Every page, for everybody: any width, light and dark, any key, with and without script."""

from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.browser.conftest import keep
from tests.browser.site import served

AXE = (Path(__file__).parents[2] / "node_modules" / "axe-core" / "axe.min.js").read_text()
PAGES = {
    "home": "/",
    "failed": "/r/{failed}",
    "several": "/r/{failed}?also={declined}",
    "declined": "/r/{declined}",
    "invalid": "/r/{invalid}",
    "partial": "/r/{partial}",
    "pending": "/r/{pending}",
    "not-received": "/r/{not_received}",
    "mistyped": "/r/{mistyped}",
    "expired": "/r/{expired}",
    "unknown": "/r/hello",
    "errors": "/errors",
    "errors-none": "/errors?tool=nothing",
    "groups": "/groups",
    "group": "/groups/{group}",
    "tools": "/tools",
    "tool": "/tools/book_meeting",
    "tool-28d": "/tools/book_meeting?period=28d",
    "health": "/health",
    "runbooks": "/runbooks",
    "problem": "/nothing",
}
DESK, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
_SERIOUS = """async () => (await axe.run({resultTypes: ["violations"]})).violations
    .filter((one) => ["serious", "critical"].includes(one.impact))
    .map((one) => one.id + ": " + one.nodes.map((node) => node.target + node.failureSummary))"""
_TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def _looked_at(page, name):
    """Serious findings of axe-core and sideways overflow, in both schemes and at each width."""
    findings = {}
    page.evaluate(AXE)
    for scheme, size in (("light", DESK), ("dark", PHONE)):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size(size)
        findings[scheme] = page.evaluate(_SERIOUS)
        findings[size["width"]] = page.evaluate(_TOO_WIDE)
        keep(page, f"{name}-{size['width']}-{scheme}")
    page.set_viewport_size({"width": 320, "height": 640})
    findings[320] = page.evaluate(_TOO_WIDE)
    return findings


NOTHING = {"light": [], "dark": [], 1280: 0, 390: 0, 320: 0}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_no_serious_finding_and_never_scrolls_sideways(opened, site, name):
    page = opened(site.url, PAGES[name].format(**vars(site)))

    assert _looked_at(page, name) == NOTHING


@pytest.mark.parametrize("name", ["first-start", "sign-in"])
def test_a_page_before_anything_is_there_has_no_serious_finding(opened, new_database, name):
    with served(new_database(), is_open=name != "sign-in") as url:
        assert _looked_at(opened(url), name) == NOTHING


@pytest.mark.parametrize("name", ["home", "failed", "errors", "group"])
def test_no_button_is_dead_without_script(opened, site, name):
    page = opened(site.url, PAGES[name].format(**vars(site)), java_script_enabled=False)

    for button in page.locator("button:visible").all():
        assert button.get_attribute("type") == "submit"


def test_the_way_from_a_sentence_to_the_card_works_without_script(opened, site):
    page = opened(site.url, java_script_enabled=False)

    page.get_by_label("Look up a reference").fill(f"it said {site.declined}, why?")
    page.get_by_role("button", name="Look up").click()

    expect(page.get_by_role("heading", level=1)).to_have_text("cancel_booking worked and said no")
    expect(page.get_by_text("Nobody needs to act")).to_be_visible()


def test_filters_and_their_addresses_work_without_script(opened, site):
    page = opened(site.url, "/errors", java_script_enabled=False)

    page.get_by_role("combobox", name="Code").select_option("CONFLICT")
    page.get_by_role("button", name="Show").click()

    assert "code=CONFLICT" in page.url
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("tbody tr")).to_contain_text(site.declined)


def test_keys_search_move_open_and_copy(opened, site):
    page = opened(site.url, "/errors?outcome=declined&outcome=invalid",
                  permissions=["clipboard-read", "clipboard-write"])  # fmt: skip
    search = page.get_by_role("searchbox")
    links = page.locator("tbody a.ref")

    page.keyboard.press("/")
    expect(search).to_be_focused()
    page.keyboard.type("j")
    expect(search).to_have_value("j")
    page.keyboard.press("Escape")
    expect(search).not_to_be_focused()

    page.keyboard.press("j")
    expect(links.nth(0)).to_be_focused()
    page.keyboard.press("j")
    expect(links.nth(1)).to_be_focused()
    page.keyboard.press("k")
    expect(links.nth(0)).to_be_focused()
    chosen = links.nth(0).inner_text()
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{site.url}/r/{chosen}")

    page.keyboard.press("c")
    expect(page.get_by_role("status")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == chosen


def test_the_first_tab_leads_past_the_navigation(opened, site):
    page = opened(site.url, f"/r/{site.failed}")

    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")

    assert page.url.endswith("#main")


def test_colours_follow_the_system_until_the_reader_chooses_and_the_choice_stays(opened, site):
    page = opened(site.url, "/errors", color_scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(background)

    button = page.get_by_role("button", name="Colours")
    button.click()
    light = page.evaluate(background)
    page.reload()

    assert (dark, light) == ("rgb(17, 20, 24)", "rgb(245, 246, 248)")
    assert page.evaluate(background) == light


@pytest.mark.parametrize("name", ["failed", "home", "errors", "groups", "group", "tool"])
def test_the_first_paint_takes_less_than_100_kilobytes(opened, site, name):
    page = opened(site.url, PAGES[name].format(**vars(site)))

    sizes = page.evaluate(
        """performance.getEntriesByType("navigation").concat(performance.getEntriesByType("resource"))
            .map((one) => one.transferSize)"""
    )

    assert len(sizes) >= 3
    assert sum(sizes) < 100_000


@pytest.mark.parametrize("width", [1280, 1100, 390])
def test_an_incident_of_days_stays_within_its_box(opened, site, width):
    page = opened(site.url, f"/r/{site.failed}", viewport={"width": width, "height": 800})
    box = page.locator("header", has=page.get_by_role("heading", name="Part of an incident"))
    box.locator(".state").evaluate("(it) => it.append(' to 30 Nov 23:59, and a few more words')")
    assert box.evaluate("(it) => it.scrollWidth - it.clientWidth") == 0

"""The page that the alerts' runbook links lead to."""

import re
from html import unescape
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
import yaml
from prometheus_client import CollectorRegistry

from toolfault.alerts.overrides import Change, Place
from toolfault.alerts.runbooks import sections
from toolfault.alerts.spec import Alerts, Links, Spec, Sustained
from toolfault.store.queries.base import open_engine
from toolfault.web.app import make_app

ALERTS = [
    rule
    for path in sorted((Path(__file__).parents[2] / "alerts").glob("*.rules.yml"))
    for group in yaml.safe_load(path.read_text())["groups"]
    for rule in group["rules"]
    if "alert" in rule
]


@pytest.fixture
async def page(web):
    answer = await web.get("/runbooks")
    assert answer.status_code == 200
    return answer.text


async def test_the_runbook_link_of_every_alert_lands_on_its_heading(page):
    headings = dict(re.findall(r'<h2 id="(\w+)">(\w+)</h2>', page))
    links = {alert["alert"]: urlsplit(alert["annotations"]["runbook_url"]) for alert in ALERTS}
    assert {link.path for link in links.values()} == {"/runbooks"}
    assert {headings[link.fragment]: link.fragment for link in links.values()} == {
        name: link.fragment for name, link in links.items()
    }
    assert len(headings) == len(links) == 26


async def test_a_section_says_all_that_the_file_says(page):
    shown = unescape(re.sub(r"<[^>]+>", "", page))
    for section in sections(Spec()):
        for text in (*section.checks, *section.causes, section.meaning, section.over):
            assert text.replace("`", "") in shown
        assert section.silence in shown
        assert section.silencing in shown
    assert "`" not in shown


async def test_what_stands_in_backquotes_is_code(page):
    assert "Open <code>lookup_url</code>: the newest failed calls." in page


async def test_thresholds_and_owners_are_those_of_the_settings(browse):
    lasting = Sustained(severity="ticket", nats=9, factor=7, floor=0.1, owner="payments <team>")
    mine = Spec(alerts=Alerts(internal_errors_elevated=lasting))
    answer = await browse(alerts=mine).get("/runbooks")
    assert "more than 7 times the usual share" in answer.text
    assert "ticket: read it this week; owner payments &lt;team&gt;" in answer.text


async def test_where_an_alert_is_different_is_told(browse):
    off = Place(service="<sandbox>", alerts={"unguarded_error": Change(enabled=False)})
    answer = await browse(alerts=Spec(places=(off,))).get("/runbooks")
    assert answer.text.count("<li>Off in service &lt;sandbox&gt;.</li>") == 1


async def test_it_opens_without_a_token_and_while_the_database_is_away():
    away = open_engine("postgresql://nobody@127.0.0.1:1/none")
    app = make_app(away, registry=CollectorRegistry(), is_open=False)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://toolfault") as web:
        page = await web.get("/runbooks")
    assert page.status_code == 200
    assert "ToolfaultPartitionsNotAhead" in page.text
    away.dispose()


def test_links_lead_to_the_service_unless_the_settings_name_another_place():
    assert Links(toolfault="https://t.example").runbook("ToolfaultX") == (
        "https://t.example/runbooks#toolfaultx"
    )
    elsewhere = Links(runbooks="https://wiki.example/runbooks")
    assert elsewhere.runbook("ToolfaultX") == "https://wiki.example/runbooks#toolfaultx"

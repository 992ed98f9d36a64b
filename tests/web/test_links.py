"""The links of a card to other viewers, as the documentation gives them."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from toolfault import settings
from toolfault.web.cards import Links
from toolfault.web.lookup import lookup

PAGE = Path(__file__).parents[2] / "docs" / "lookup.md"
ROW = re.compile(
    r"^\| ([^|]+) \| `TOOLFAULT_(TRACE_LINK|LOG_LINK)` \| `(http\S+)` \|$", re.MULTILINE
)
TEMPLATES = {viewer: (name.lower(), value) for viewer, name, value in ROW.findall(PAGE.read_text())}
BEGAN = datetime(2026, 11, 29, 12, tzinfo=UTC)


@pytest.fixture
def link(store, make, conn):
    """The link that a viewer's template makes for a call of two seconds at noon."""

    def made(viewer):
        name, value = TEMPLATES[viewer]
        asked = settings.read({f"TOOLFAULT_{name.upper()}": value})
        call = make.call(
            reference_id="ABC 1/2", started_at=BEGAN, duration_us=2_000_000, service="my agent",
            trace_id=b"\xab" * 16, span_id=b"\xcd" * 8,
        )  # fmt: skip
        store([call])
        links = Links(asked.trace_link, asked.log_link)
        match = lookup(conn, call.reference_id, links=links).matches[0]
        return match.trace_url or match.log_url

    return made


def test_every_viewer_is_documented():
    assert set(TEMPLATES) == {
        "Jaeger", "Tempo, in Grafana", "Honeycomb", "Loki, in Grafana", "CloudWatch", "Kibana",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("viewer", "address"),
    [
        ("Jaeger", f"https://jaeger.example.com/trace/{'ab' * 16}?uiFind={'cd' * 8}"),
        ("Honeycomb", "https://ui.honeycomb.io/TEAM/environments/ENVIRONMENT/trace"
         f"?trace_id={'ab' * 16}&span={'cd' * 8}"),
        ("CloudWatch", "https://REGION.console.aws.amazon.com/cloudwatch/home?region=REGION#logsV2:"
         "log-groups/log-group/GROUP/log-events$3FfilterPattern$3D$2522ABC%201%2F2$2522"
         "$26start$3D1795953300000$26end$3D1795953902000"),
        ("Kibana", "https://kibana.example.com/app/discover#/?_g=(time:(from:now-30d,to:now))"
         "&_a=(query:(language:kuery,query:'%22ABC%201%2F2%22'))"),
    ],
)  # fmt: skip
def test_a_link_leads_to_the_call(link, viewer, address):
    assert link(viewer) == address


@pytest.mark.parametrize(
    ("viewer", "field", "query"),
    [
        ("Tempo, in Grafana", "query", "ab" * 16),
        ("Loki, in Grafana", "expr", '{service_name="my agent"} |= `ABC 1/2`'),
    ],
)
def test_a_pane_of_grafana_asks_for_the_call(link, viewer, field, query):
    panes = json.loads(parse_qs(urlsplit(link(viewer)).query)["panes"][0])
    (pane,) = panes.values()
    assert pane["queries"][0][field] == query
    assert pane["range"] == {"from": "1795953300000", "to": "1795953902000"}

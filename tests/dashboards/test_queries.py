"""Every query of every panel and variable, over a real Prometheus and a real PostgreSQL: there is data, of the shape
the panel needs, for everything and for one tool."""

import re

import pytest
from tests.dashboards.conftest import ONE

from toolfault import conventions as names
from toolfault.dashboards import statements

PAGES = tuple(names.DASHBOARDS)
#: The world is half a minute in the making, minutes on a busy machine.
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(params=["all", "one"])
def chosen(request):
    return None if request.param == "all" else ONE


@pytest.mark.parametrize("key", PAGES)
def test_every_panel_has_data_of_its_shape(world, key, chosen):
    values = world.values(world.pages[key], chosen)
    shown = [panel for panel in world.pages[key]["panels"] if panel["type"] != "row"]
    for panel, specified in zip(shown, world.specified[key].panels, strict=True):
        assert panel["title"] == specified.title
        found = [world.data_of(target, values) for target in panel["targets"]]
        assert all(found), panel["title"]  # everything that a panel shows has happened
        SHAPES[panel["type"]](panel, found)


def one_number(panel, found):
    [[one]] = found
    number = list(one.values()) if isinstance(one, dict) else [one[1]]
    assert len(number) == 1
    assert float(number[0]) >= 0


def series_with_names(panel, found):
    for target, series in zip(panel["targets"], found, strict=True):
        labels = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
        for metric, points in series:
            assert labels <= metric.keys()
            assert points
    names_of_series = {tuple(sorted(metric.items())) for series in found for metric, _ in series}
    assert len(names_of_series) <= 60


def buckets(panel, found):
    [series] = found
    last = sorted((float(metric["le"]), points[-1][1]) for metric, points in series)
    counts = [round(amount, 6) for _, amount in last]
    assert counts == sorted(counts)
    assert max(max(value for _, value in points) for _, points in series) > 0


def columns(panel, found):
    shown = [one["matcher"]["options"] for one in panel["fieldConfig"]["overrides"][1:]]
    if "rawSql" in panel["targets"][0]:
        assert set(shown) <= found[0][0].keys()
        return
    letters = {f"Value #{target['refId']}" for target in panel["targets"]}
    labels = {label for series in found for metric, _ in series for label in metric}
    assert set(shown) <= labels | letters


SHAPES = {
    "stat": one_number,
    "timeseries": series_with_names,
    "state-timeline": series_with_names,
    "heatmap": buckets,
    "table": columns,
}


@pytest.mark.parametrize("key", PAGES)
def test_annotations_have_data(world, key):
    page = world.pages[key]
    values = world.values(page)
    alerts, versions = page["annotations"]["list"]
    assert {metric["alertname"] for metric, _ in world.over_time(alerts["expr"], values)} >= {
        "ToolfaultInternalErrorSpike",
        "ToolfaultCredentialRejected",
    }
    started = world.rows(versions["target"]["rawSql"], values)
    assert {row["text"] for row in started} == {
        "booking 2.1.0",
        "search 7.0.3",
        "scheduling-agent 1.4.0",
    }
    assert started[0].keys() == {"time", "text", "tags"}


def test_numbers_are_those_of_what_was_sent(world):
    """Of each round: 14 INTERNAL and 1 timed out with unknown effect; the demo adds none of this tool."""
    values = world.values(world.pages["tool"], ONE)
    assert world.rows(statements.COUNT_OF_UNKNOWN_EFFECTS, values) == [{"calls": 15 * world.rounds}]
    reasons = {
        row["reason"]: (row["calls"], row["effect"])
        for row in world.rows(statements.REASONS, values)
    }
    assert reasons == {
        "token_expired": (22 * world.rounds, "none"),
        "unmapped_failure": (14 * world.rounds, "unknown"),
        "timed_out": (world.rounds, "unknown"),
        "slot_taken": (world.rounds, "none"),
        "needs_approval": (world.rounds, "none"),
        "date_not_iso": (world.rounds, "none"),
    }
    answers = world.rows(statements.ANSWERS_BY_REASON, values)
    assert {(row["outcome"], row["reason"]) for row in answers} == {
        ("declined", "slot_taken"),
        ("refused", "needs_approval"),
    }
    assert [row["version"] for row in world.rows(statements.VERSIONS, values)] == ["2.1.0"]


def test_the_overview_says_that_something_is_wrong_and_where(world):
    page = world.pages["overview"]
    values = world.values(page)
    panels = {panel["title"]: panel for panel in page["panels"]}
    firing = panels["Alerts firing"]["targets"][0]["expr"]
    assert world.now(firing, values)[0][1] >= 2
    surprise = panels["Where: failures by distance from usual"]["targets"][0]["expr"]
    worst = max(world.now(surprise, values), key=lambda one: one[1])
    assert (worst[0]["tool"], worst[0]["signal"]) == ("book_slot", "PERMISSION_DENIED")


def test_tools_that_nobody_declared_are_found_under_the_name_metrics_give_them(world):
    """The demo's model calls `create_event`, which does not exist."""
    values = world.values(world.pages["tool"])
    assert names.UNDECLARED in values["tool"]
    tools = {
        row["tool"] for row in world.rows(statements.REFERENCES.replace("LIMIT 100", ""), values)
    }
    assert {"create_event", "book_slot", "book_meeting"} <= tools
    values["tool"] = [names.UNDECLARED]
    undeclared = {row["tool"] for row in world.rows(statements.REFERENCES, values)}
    assert "create_event" in undeclared
    assert "book_slot" not in undeclared


def test_a_name_with_a_quote_in_it_cannot_leave_its_place(world):
    values = world.values(world.pages["tool"]) | {"service": ["x') OR ('1' = '1"]}
    assert world.rows(statements.REFERENCES, values) == []


def test_exemplars_lead_to_cards(world):
    page = world.pages["tool"]
    values = world.values(page, ONE)
    [target] = next(p for p in page["panels"] if p["title"] == "Errors by code")["targets"]
    assert target["exemplar"]
    reference = world.exemplars(target["expr"], values)[-1]["ref"]
    assert world.open(f"{world.spec.links.toolfault}/r/{reference}").status_code == 200


@pytest.mark.parametrize("key", PAGES)
def test_links_of_rows_and_points_lead_to_pages_that_are_there(world, key):
    page = world.pages[key]
    values = world.values(page)
    web, followed = world.spec.links.toolfault, set()
    for panel in page["panels"]:
        if panel["type"] in ("row", "stat"):
            continue
        rows = [one for target in panel["targets"] for one in world.data_of(target, values)]
        for url in links_of(panel):
            fields = next(row for row in map(fields_of, rows) if wanted(url) <= row.keys())
            followed.add(world.link(url, fields))
    for url in followed:
        if url.startswith(web):
            answer = world.open(url)
            assert answer.status_code == 200, url
            assert "Nothing matches" not in answer.text, url
        else:
            assert url.startswith((f"/d/{names.DASHBOARDS['tool']}?", "http"))


def links_of(panel):
    yield from (link["url"] for link in panel["fieldConfig"]["defaults"]["links"])
    for override in panel["fieldConfig"]["overrides"]:
        for one in override["properties"]:
            if one["id"] == "links":
                yield from (link["url"] for link in one["value"])


def wanted(url):
    return set(re.findall(r"\$\{__(?:data\.fields|field\.labels)\.(\w+)", url))


def fields_of(row):
    fields = row if isinstance(row, dict) else row[0]
    return {name: value for name, value in fields.items() if value is not None}

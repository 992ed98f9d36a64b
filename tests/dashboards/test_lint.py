"""The rules of good dashboards, held against the JSON itself; and the specification against the names."""

import json
import re
from pathlib import Path

import promql_parser
import pytest
import yaml

from toolfault import conventions as names
from toolfault.alerts.spec import Spec
from toolfault.dashboards import statements
from toolfault.dashboards.build import build, dashboards, outputs

ROOT = Path(__file__).parents[2] / "dashboards"
PAGES = {path.stem: json.loads(path.read_text()) for path in sorted(ROOT.glob("*.json"))}


def of_every_panel(check):
    """One test for each page, which names the panel that fails."""

    @pytest.mark.parametrize("page", PAGES.values(), ids=PAGES.keys())
    def test(page):
        for panel in page["panels"]:
            if panel["type"] != "row":
                try:
                    check(page, panel)
                except AssertionError as failed:
                    failed.add_note(f"in the panel: {panel['title']}")
                    raise

    return test


#: Prometheus' own; everything else is ours.
OF_PROMETHEUS = {"up", "ALERTS"}
SUFFIXES = ("_total", "_bucket", "_count", "_sum", "")
METRICS = {
    value
    for key, value in vars(names).items()
    if key.isupper() and isinstance(value, str) and value.startswith("toolfault_")
}
GAUGES = {
    names.DEAD_LETTERS_WAITING,
    names.INGEST_QUEUE_BYTES,
    names.DATABASE_BYTES,
    names.PARTITIONS_AHEAD,
}
UNITS = {"none", "reqps", "rowsps", "percentunit", "s", "bytes", "d", "time:MM-DD HH:mm:ss"}


def expressions(panel):
    return [target["expr"] for target in panel["targets"] if "expr" in target]


def filled(expression):
    """An expression with Grafana's variables replaced, so that it is PromQL."""
    return re.sub(
        r"\$__(rate_interval|range|interval)\b", "5m", re.sub(r"\$(?!__)\w+", "x", expression)
    )


def recorded():
    """Names that the alerts' recording rules make."""
    rules = (ROOT.parent / "alerts").glob("*.rules.yml")
    return set(re.findall(r"record: (\S+)", "".join(path.read_text() for path in rules)))


def metrics(expression):
    return set(re.findall(r"(?<![\w:\"$~.])([a-zA-Z_][\w:]*)(?=[{\[])", expression))


def test_what_is_committed_is_what_the_specification_makes(tmp_path):
    written = build(tmp_path, Spec())
    for path in written:
        assert path.read_bytes() == (ROOT / path.relative_to(tmp_path)).read_bytes()
    committed = {p for p in ROOT.rglob("*") if p.is_file() and p.name != "README.md"}
    assert {p.relative_to(ROOT) for p in committed} == {p.relative_to(tmp_path) for p in written}


def test_the_same_specification_makes_the_same_bytes():
    assert outputs(Spec()) == outputs(Spec())


def test_there_are_four_pages_under_the_addresses_that_alerts_lead_to():
    assert {page["uid"] for page in PAGES.values()} == set(names.DASHBOARDS.values())
    assert PAGES.keys() == names.DASHBOARDS.keys()


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES.keys())
def test_a_page_is_classic_json_of_today_shares_its_crosshair_and_cannot_be_edited(page):
    assert page["schemaVersion"] == 42
    assert page["graphTooltip"] == 1
    assert page["editable"] is False
    assert page["title"].startswith("Toolfault: ")
    assert page["description"]


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES.keys())
def test_links_to_the_other_pages_keep_time_and_choices(page):
    links = page["links"]
    assert {link["url"] for link in links} == {
        f"/d/{uid}" for uid in names.DASHBOARDS.values() if uid != page["uid"]
    }
    assert all(link["includeVars"] and link["keepTime"] for link in links)


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES.keys())
def test_variables_are_data_sources_first_then_choices_read_again_when_the_time_changes(page):
    variables = page["templating"]["list"]
    sources, choices = variables[:2], variables[2:]
    assert [(one["name"], one["type"]) for one in sources] == [
        ("datasource", "datasource"),
        ("postgres", "datasource"),
    ]
    assert {"environment", "service"} <= {one["name"] for one in choices}
    for choice in choices:
        assert (choice["refresh"], choice["multi"], choice["includeAll"]) == (2, True, True)
        assert choice["datasource"]["uid"] == "${datasource}"
        assert "allValue" not in choice  # SQL would get it unquoted


@of_every_panel
def test_a_panel_says_what_it_shows_and_has_a_text_for_nothing(page, panel):
    assert panel["title"]
    assert len(panel["description"]) > 15
    assert panel["description"].endswith(".")
    assert panel["fieldConfig"]["defaults"]["noValue"]


@of_every_panel
def test_a_panel_has_a_unit_or_its_columns_have(page, panel):
    if panel["type"] == "table":
        units = [
            one["value"]
            for override in panel["fieldConfig"]["overrides"]
            for one in override["properties"]
            if one["id"] == "unit"
        ]
        assert set(units) <= UNITS
    else:
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS


@of_every_panel
def test_queries_ask_the_data_source_that_was_chosen(page, panel):
    for target in panel["targets"]:
        assert target["datasource"]["uid"] == (
            "${datasource}" if "expr" in target else "${postgres}"
        )


@of_every_panel
def test_expressions_are_promql(page, panel):
    for expression in expressions(panel):
        promql_parser.parse(filled(expression))


@of_every_panel
def test_every_metric_is_one_of_the_conventions_or_recorded_by_the_alerts(page, panel):
    known = {f"{metric}{suffix}" for metric in METRICS for suffix in SUFFIXES}
    for expression in expressions(panel):
        assert metrics(expression)
        assert metrics(expression) <= known | recorded() | OF_PROMETHEUS


@of_every_panel
def test_a_counter_is_only_ever_seen_through_its_rate_or_rise(page, panel):
    for expression in expressions(panel):
        inside = re.findall(r"(?:rate|increase)\((\w+)(?:\{[^}]*\})?\[", expression)
        for metric in re.findall(r"\btoolfault_\w+", expression):
            if metric not in GAUGES:
                assert metric in inside or ":" in expression


@of_every_panel
def test_a_rate_follows_the_step_of_the_graph(page, panel):
    for expression in expressions(panel):
        assert set(re.findall(r"\brate\([^\[]+\[([^\]]+)\]", expression)) <= {"$__rate_interval"}


@of_every_panel
def test_totals_that_every_replica_shows_count_once(page, panel):
    own = "toolfault_ingest_"
    for expression in expressions(panel):
        for metric in re.findall(r"(?:rate|increase)\((toolfault_\w+)", expression):
            assert metric.startswith(own) or "max without (instance) (" in expression


@of_every_panel
def test_series_have_no_names_with_labels_they_do_not_have(page, panel):
    for target in panel["targets"]:
        wanted = set(re.findall(r"\{\{(\w+)\}\}", target.get("legendFormat", "")))
        if wanted and (grouped := re.findall(r"sum by \(([^)]*)\)", target["expr"])):
            assert wanted <= set(re.split(r",\s*", ", ".join(grouped)))


@of_every_panel
def test_panels_lie_beside_each_other(page, panel):
    def cells(one):
        place = one["gridPos"]
        assert place["x"] + place["w"] <= 24
        return {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }

    others = [one for one in page["panels"] if one["id"] != panel["id"]]
    assert not cells(panel) & {cell for other in others for cell in cells(other)}


@pytest.mark.parametrize(
    "name", [name for name in vars(statements) if name.isupper() and not name.startswith("_")]
)
def test_a_statement_reads_a_bounded_number_of_rows_of_the_time_shown_and_of_what_is_chosen(name):
    statement = getattr(statements, name)
    assert "@" not in statement
    assert "${service:sqlstring}" in statement
    assert "${environment:sqlstring}" in statement
    assert "LIMIT" in statement or "count(*)" in statement or "HAVING" in statement
    if name != "SERVICES":
        assert "$__time" in statement


def test_every_statement_is_sql_before_there_is_anything_to_choose(connection):
    connection.execute("SET ROLE toolfault_read")
    for name in (name for name in vars(statements) if name.isupper() and not name.startswith("_")):
        text = re.sub(r"\$\{\w+:sqlstring\}", "", getattr(statements, name))
        text = re.sub(r"\$__timeFilter\((\w+)\)", r"\1 > '2026-01-01'", text)
        text = re.sub(r"\$__time(From|To)\(\)", "'2026-01-01'", text)
        found = connection.execute(text).fetchall()
        assert found in ([], [(0,)])


def test_what_may_be_empty_says_why_and_what_must_not_be_is_the_larger_part_of_the_first_screen():
    for dashboard in dashboards(Spec()):
        for panel in dashboard.panels:
            assert not panel.empty or panel.empty.endswith(".")
        first = dashboard.panels[:6]
        assert sum(not panel.empty for panel in first) >= 3


def test_the_on_call_page_asks_the_alerts_own_expressions_and_draws_their_limits():
    rules = {
        rule.get("alert"): rule["expr"]
        for path in (ROOT.parent / "alerts").glob("*.rules.yml")
        for group in yaml.safe_load(path.read_text())["groups"]
        for rule in group["rules"]
    }
    panels = {panel["title"]: panel for panel in PAGES["on-call"]["panels"]}
    met = {title: panel for title, panel in panels.items() if title.endswith(": condition met")}
    assert len(met) == 5
    for title, panel in met.items():
        expression = rules[title.removesuffix(": condition met")]
        assert panel["targets"][0]["expr"].startswith(f"(\n{expression}\n)\nand on (")
    drawn = {
        title.removeprefix("Toolfault"): panel["fieldConfig"]["defaults"]["thresholds"]["steps"][1][
            "value"
        ]
        for title, panel in panels.items()
        if title.startswith("Toolfault") and panel["type"] == "timeseries"
    }
    assert drawn["InternalErrorSpike: surprise (nats)"] == 14
    assert drawn["InternalErrorSpike: times usual"] == 3
    assert drawn["InternalErrorSpike: share of calls"] == 0.002
    assert drawn["CredentialRejected: share of calls"] == 0.5
    assert drawn["PermissionDenied: surprise (nats)"] == 12
    assert drawn["BudgetExhaustionRising: times usual"] == 3

"""Settings of one's own: every mistake is told by line and field; places change what they name."""

import json

import pytest
from tests.alerts.checks import run

from toolfault.alerts.build import build, outputs
from toolfault.alerts.rules import files
from toolfault.alerts.settings_file import read, schema
from toolfault.alerts.spec import Alerts, Spec, alert_name
from toolfault.settings import SettingError


def _read(tmp_path, text):
    path = tmp_path / "mine.yml"
    path.write_text(text)
    return read(path)


def _mistake(tmp_path, text):
    with pytest.raises(SettingError) as told:
        _read(tmp_path, text)
    return str(told.value).replace(str(tmp_path / "mine.yml"), "mine.yml")


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "{}\n", "alerts: {}\n"])
def test_a_file_that_says_nothing_changes_nothing(tmp_path, text):
    assert outputs(_read(tmp_path, text)) == outputs(Spec())


def test_what_is_given_replaces_the_shipped_value_and_nothing_else(tmp_path):
    spec = _read(tmp_path, "alerts:\n  internal_error_spike:\n    nats: 20\n")
    assert spec.alerts.internal_error_spike.nats == 20
    assert spec.alerts.internal_error_spike.factor == 3
    assert spec.windows == Spec().windows


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "windows: [\n",
            "mine.yml:2: this is no YAML: expected the node content, but found '<stream end>'.",
        ),
        (
            "windows: !!python/name:os.system x\n",
            "mine.yml:1: windows: this must be text, a number, or true or false.",
        ),
        ("windows: &a [*a]\n", "mine.yml:1: this is nested too deeply."),
        ("windows: &a {b: *a}\n", "mine.yml:1: this is nested too deeply."),
        (
            "a0: &a0 [x, x]\n"
            + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 15)),
            "mine.yml: this says more than 10,000 things.",
        ),
        *(
            (
                f"links:\n  grafana: {odd}\n",
                "mine.yml:2: links.grafana: this must be text, a number, or true or false.",
            )
            for odd in (
                "2001-13-45",
                "2001-01-01T00:00:00+99:99",
                "!!int abc",
                "!!float abc",
                "!!bool abc",
                "!!timestamp abc",
                "0x_",
                "9" * 5000,
            )
        ),
        (
            "windows:\n  short: 0m\n  stretch: 0m\n",
            "mine.yml:2: windows.short: this must be written like 5m.\n"
            "mine.yml:3: windows.stretch: this must be written like 5m.",
        ),
        (
            f"windows: {{short: {'9' * 26}d}}\n",
            "mine.yml:1: windows.short: this must be written like 5m.",
        ),
        ("[" * 9999, "mine.yml: this is nested too deeply."),
        (
            "links:\n  toolfualt: http://x\n",
            "mine.yml:2: links.toolfualt is no setting. Did you mean toolfault?",
        ),
        (
            "alerts:\n  internal_error_spike:\n    nats: many\n",
            "mine.yml:3: alerts.internal_error_spike.nats: this must be a number.",
        ),
        (
            "alerts:\n\n  target_down: {wait: five minutes}\n",
            "mine.yml:3: alerts.target_down.wait: this must be written like 5m.",
        ),
        (
            "links: {grafana: grafana.example}\n",
            "mine.yml:1: links.grafana: this must be written like http://localhost:3000.",
        ),
        (
            "windows:\n  near: 1m\n  stretch: 3m\n",
            "mine.yml:3: windows.stretch: two of windows.stretch must fit into windows.short.",
        ),
        # they stand in alerts and on pages that anybody may read
        (
            "stack: {alertmanagers: ['http://me:" + "visibly-fake" + "@alertmanager:9093']}\n",
            "mine.yml:1: stack.alertmanagers #1: this must be written like http://localhost:3000.",
        ),
        (
            "windows:\n  short: 3m\n",
            "mine.yml:1: windows: two of windows.stretch must fit into windows.short.",
        ),
        (
            "windows:\n  slow: 1h\n",
            "mine.yml:2: windows.slow: 3 of baseline.learned must fit into windows.slow.",
        ),
        (
            "baseline: {learned: 150m}\n",
            "mine.yml:1: the file: 3 of baseline.learned must fit into windows.slow.",
        ),
        (
            "windows:\n  sustained: 10m\n",
            "mine.yml:2: windows.sustained: 3 of baseline.bucket must fit into windows.sustained.",
        ),
        (
            "alerts:\n  credential_rejected:\n    buckets: 4\n",
            "mine.yml:3: alerts.credential_rejected.buckets: 4 of baseline.bucket must fit into "
            "windows.medium.",
        ),
        (
            "places:\n  - service: a\n    alerts:\n      policy_refusals_elevated: {buckets: 13}\n",
            "mine.yml:4: places #1.alerts.policy_refusals_elevated.buckets: 13 of baseline.learned "
            "must fit into windows.slow.",
        ),
        (
            "windows:\n  evaluation: 3m\n",
            "mine.yml:2: windows.evaluation: windows.evaluation must fit into windows.stretch.",
        ),
        (
            "windows:\n  medium: 5m\n",
            "mine.yml:2: windows.medium: windows.medium must be longer than windows.short.",
        ),
        (
            "windows:\n  long: 15m\n",
            "mine.yml:2: windows.long: windows.long must be longer than windows.medium.",
        ),
        (
            "alerts:\n  watchdog:\n    severity: loud\n",
            "mine.yml:3: alerts.watchdog.severity: this must be 'critical', 'warning', "
            "'ticket' or 'none'.",
        ),
        (
            "places:\n  - alerts: {}\n",
            "mine.yml:2: places #1: name a service, an environment or a tool.",
        ),
        (
            "places:\n  - service: a\n    alerts:\n      internal_eror_spike: {nats: 3}\n",
            "mine.yml:4: places #1.alerts.internal_eror_spike: there is no such alert. Did you "
            "mean internal_error_spike?",
        ),
        (
            "places:\n  - tool: a\n    alerts:\n      many_tools_failing: {tools: 9}\n",
            "mine.yml:4: places #1.alerts.many_tools_failing: ToolfaultManyToolsFailing is not "
            "told apart by tool.",
        ),
        (
            "places:\n  - service: a\n    alerts:\n      target_down: {enabled: false}\n",
            "mine.yml:4: places #1.alerts.target_down: ToolfaultTargetDown is not told apart by "
            "service.",
        ),
        (
            "places:\n  - service: a\n    alerts:\n      unguarded_error:\n        nats: 3\n",
            "mine.yml:5: places #1.alerts.unguarded_error.nats: ToolfaultUnguardedError has no such "
            "limit.",
        ),
        (
            "links: {}\nalerts: {}\nlinks: {}\n",
            "mine.yml:3: links is given twice.",
        ),
        ("- a\n", "mine.yml:1: this must be a mapping such as `alerts:`."),
        (
            "jobs: {replica_labels: pod}\n",
            "mine.yml:1: jobs.replica_labels: this must be a list (for example `[instance]`).",
        ),
        (
            "alerts:\n  internal_error_spike: 16\n",
            "mine.yml:2: alerts.internal_error_spike: this must be a mapping of its limits "
            "(for example `{nats: 14}`).",
        ),
        (
            "places:\n  - service: a\n    alerts: {internal_error_spike: 16}\n",
            "mine.yml:3: places #1.alerts.internal_error_spike: this must be a mapping of its "
            "limits (for example `{nats: 14}`).",
        ),
        (
            "jobs: 3\n",
            "mine.yml:1: jobs: this must be a mapping (for example `{service: toolfault}`).",
        ),
        ("places: 3\n", "mine.yml:1: places: this must be a list."),
        (
            "receivers:\n  owner_channels: 3\n",
            "mine.yml:2: receivers.owner_channels: this must be a mapping.",
        ),
        (
            'stack: {replicas: ["toolfault:8700"]}\n',
            "mine.yml:1: stack.replicas #1: this must be written like http://localhost:3000.",
        ),
        ("stack: {replicas: []}\n", "mine.yml:1: stack.replicas: this must have at least 1."),
        (
            "alerts: {internal_error_spike: {factor: 0.5}}\n",
            "mine.yml:1: alerts.internal_error_spike.factor: this must be at least 1.",
        ),
        (
            "places: [{service: a, alerts: {internal_error_spike: {factor: 0.5}}}]\n",
            "mine.yml:1: places #1.alerts.internal_error_spike.factor: this must be at least 1.",
        ),
        (
            "alerts: {many_tools_failing: {tools: 1}}\n",
            "mine.yml:1: alerts.many_tools_failing.tools: this must be at least 2.",
        ),
        (
            "places: [{service: a, alerts: {many_tools_failing: {tools: 1}}}]\n",
            "mine.yml:1: places #1.alerts.many_tools_failing.tools: this must be at least 2.",
        ),
        (
            "places:\n  - service: a\n",
            "mine.yml:2: places #1: say under `alerts` what is different there.",
        ),
        (
            "places:\n"
            "  - {service: a, tool: t, alerts: {internal_error_spike: {nats: 9}}}\n"
            "  - {service: a, alerts: {internal_error_spike: {nats: 9}}}\n"
            "  - {tool: t, service: a, alerts: {internal_error_spike: {nats: 10}}}\n",
            "mine.yml:4: places #3: this is the same place as places #1; write both as one.",
        ),
        (
            "receivers: {owner_channels: {ghost: '#ghosts'}}\n"
            "alerts: {internal_error_spike: {owner: ghst}}\n",
            "mine.yml:2: alerts.internal_error_spike.owner: ghst has no channel in "
            "receivers.owner_channels. Did you mean ghost?",
        ),
        (
            "receivers: {owner_channels: {payments: '#p'}}\n"
            "places:\n"
            "  - {service: a, alerts: {internal_error_spike: {owner: ghost}}}\n",
            "mine.yml:3: places #1.alerts.internal_error_spike.owner: ghost has no channel in "
            "receivers.owner_channels. Give it one.",
        ),
        ("? [a]\n: b\n", "mine.yml:1: the name of a setting must be text."),
        *(
            (
                f"stack:\n  {name}: ['http://a:1', 'https://b:1']\n",
                f"mine.yml:2: stack.{name}: all must begin with http://, or all with https://.",
            )
            for name in ("replicas", "collectors", "alertmanagers")
        ),
        *(
            (
                f"links: {{toolfault: 'http://{odd}'}}\n",
                "mine.yml:1: links.toolfault: this must be written like http://localhost:3000.",
            )
            for odd in ("[a", "/")
        ),
        (
            "stack: {every: 61s}\n",
            "mine.yml:1: stack.every: stack.every must be at most half of windows.near.",
        ),
        (
            "windows: {near: 29s}\n",
            "mine.yml:1: the file: stack.every must be at most half of windows.near.",
        ),
        ("stack: {every: 0s}\n", "mine.yml:1: stack.every: this must be written like 5m."),
        (
            "baseline: {season_days: 8}\n",
            "mine.yml:1: baseline.season_days: baseline.season_days (8) must be at most "
            "baseline.days (7).",
        ),
        (
            "baseline: {days: 3}\n",
            "mine.yml:1: baseline: baseline.season_days (4) must be at most baseline.days (3).",
        ),
        (
            "baseline:\n  bucket: 8m\nalerts: {credential_rejected: {buckets: 1}}\n",
            "mine.yml:2: baseline.bucket: two of baseline.bucket must fit into windows.medium.",
        ),
        *(
            (
                f"places: [{{service: a, alerts: {{target_down: {{{name}: 5m}}}}}}]\n",
                f"mine.yml:1: places #1.alerts.target_down.{name} cannot differ by place: "
                f"`{name}` is the same everywhere.",
            )
            for name in ("wait", "keep")
        ),
        (
            "windows: {long: 1}\n",
            "mine.yml:1: windows.long: this must be text with a unit, like 90s or 5m.",
        ),
        (
            "alerts: {target_down: {wait: 90}}\n",
            "mine.yml:1: alerts.target_down.wait: this must be text with a unit, like 90s or 5m.",
        ),
        ("links: {grafana: 3}\n", "mine.yml:1: links.grafana: this must be text."),
        (
            "receivers:\n  chat_channel: #pay\n",
            "mine.yml:2: receivers.chat_channel: this must be text; put text that begins with # "
            "in quotes.",
        ),
        (
            "receivers:\n  owner_channels: {payments: #pay}\n",
            "mine.yml:3: this is no YAML: expected the node content, but found '<stream end>'. "
            "Put text that begins with # in quotes.",
        ),
        (
            "windows: {}  # as shipped\nlinks: [\n",
            "mine.yml:3: this is no YAML: expected the node content, but found '<stream end>'.",
        ),
    ],
)
def test_a_mistake_is_told_by_line_and_field(tmp_path, text, told):
    assert _mistake(tmp_path, text) == told


def test_every_mistake_is_told_at_once(tmp_path):
    told = _mistake(tmp_path, "waits:\n  group: no\n  repeat: never\n")
    assert [line.split(" ")[0] for line in told.splitlines()] == ["mine.yml:2:", "mine.yml:3:"]


def test_broken_yaml_and_a_missing_file_are_told_in_a_sentence(tmp_path):
    assert _mistake(tmp_path, "alerts:\n  a: b: c\n").startswith("mine.yml:2: ")
    with pytest.raises(SettingError, match=r"missing\.yml cannot be read \(.+\)\. Give an"):
        read(tmp_path / "missing.yml")


def test_a_place_that_is_no_folder_is_told_in_a_sentence(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(
        SettingError, match=r"cannot be written \(.+\)\. Name a folder that can be written to\."
    ):
        build(tmp_path / "file", Spec())


def test_a_duration_shorter_than_a_second_is_told_in_milliseconds(tmp_path):
    spec = _read(tmp_path, "windows: {short: 1500ms, stretch: 500ms, evaluation: 100ms}\n")
    assert "each of the last two stretches of 500 milliseconds" in outputs(spec)["runbooks.md"]


def test_what_is_learned_by_the_hour_is_told_in_hours(tmp_path):
    spec = _read(tmp_path, "baseline: {learned: 1h}\n")
    assert "in at least 3 stretches of 1 hour" in outputs(spec)["runbooks.md"]


def test_scrapes_may_be_as_far_apart_as_half_of_what_is_near(tmp_path):
    assert _read(tmp_path, "stack: {every: 1m}\n").stack.every == "1m"


ADDRESSES = """
links: {toolfault: "https://t.example/", grafana: "https://g.example/grafana/"}
stack:
  replicas: ["http://a.example:8700/"]
  collectors: ["http://c.example:8888/"]
  alertmanagers: ["http://m.example:9093/"]
"""


def test_a_slash_at_the_end_of_an_address_changes_nothing(tmp_path):
    spec = _read(tmp_path, ADDRESSES)
    assert spec.links.toolfault == "https://t.example"
    assert outputs(spec) == outputs(_read(tmp_path, ADDRESSES.replace('/"', '"')))


def test_an_address_that_is_used_as_it_is_keeps_its_slash(tmp_path):
    spec = _read(tmp_path, "receivers: {dead_mans_switch: 'https://d.example/ping/'}\n")
    assert spec.receivers.dead_mans_switch == "https://d.example/ping/"


def test_the_schema_knows_every_setting_and_requires_none():
    told = schema()
    assert set(told["properties"]) == set(Spec.__slots__)
    assert '"required"' not in json.dumps(told)
    assert told["additionalProperties"] is False


def test_the_schema_says_what_every_setting_means():
    parts = schema()["$defs"]
    unsaid = [
        f"{part}.{name}"
        for part, told in parts.items()
        for name, field in told["properties"].items()
        if part != "Alerts" and "description" not in json.dumps(field)
    ]
    assert unsaid == []
    assert parts["Windows"]["properties"]["near"]["description"].startswith("How old a scrape")


PLACES = """
places:
  - environment: staging
    alerts:
      internal_error_spike: {severity: ticket, owner: nobody}
  - tool: flaky
    alerts:
      internal_error_spike: {nats: 40}
  - environment: staging
    tool: flaky
    alerts:
      internal_error_spike: {nats: 10}
  - service: sandbox
    alerts:
      internal_error_spike: {enabled: false}
      unguarded_error: {more_than: 3}
  - service: sandbox
    tool: serious
    alerts:
      internal_error_spike: {enabled: true}
"""
FIRING = """
rule_files: [toolfault-tools.rules.yml]
evaluation_interval: 30s
tests:
  - interval: 30s
    input_series: [SERIES]
    promql_expr_test:
      - expr: ALERTS{alertstate="firing",alertname="ToolfaultInternalErrorSpike"}
        eval_time: 12m
        exp_samples:
"""
#: n = 300, E = 9, k = 30: S = 15.1 everywhere.
CASES = (
    FIRING
    + """\
          # 14 elsewhere
          - {labels: 'ALERTS{alertname="ToolfaultInternalErrorSpike",alertstate="firing",code="INTERNAL",signal="INTERNAL",severity="critical",owner="unowned",service="shop",environment="prod",tool="pay"}', value: 1}
          # less severe in staging, where flaky has a limit of its own again
          - {labels: 'ALERTS{alertname="ToolfaultInternalErrorSpike",alertstate="firing",code="INTERNAL",signal="INTERNAL",severity="ticket",owner="nobody",service="shop",environment="staging",tool="pay"}', value: 1}
          - {labels: 'ALERTS{alertname="ToolfaultInternalErrorSpike",alertstate="firing",code="INTERNAL",signal="INTERNAL",severity="ticket",owner="nobody",service="shop",environment="staging",tool="flaky"}', value: 1}
          # switched on again in a narrower place
          - {labels: 'ALERTS{alertname="ToolfaultInternalErrorSpike",alertstate="firing",code="INTERNAL",signal="INTERNAL",severity="critical",owner="unowned",service="sandbox",environment="prod",tool="serious"}', value: 1}
"""
)


def _series(service, environment, tool, failed="30x20", ratio=0.03):
    place = f'job="j",instance="a",service="{service}",environment="{environment}",tool="{tool}"'
    named = f'service="{service}",environment="{environment}",tool="{tool}",signal="INTERNAL"'
    count = "toolfault_tool_call_duration_seconds_count"
    calls = f'toolfault_tool_calls_total{{{place},outcome="failed",code="INTERNAL"}}'
    usual = f"service_environment_tool_signal:toolfault_baseline:ratio5m{{{named}}}"
    return ", ".join(
        f"{{series: '{series}', values: {values}}}"
        for series, values in (
            (f"{count}{{{place}}}", "0+30x40"),
            (calls, f"0x20 {failed}"),
            (usual, f"{ratio}x40"),
        )
    )


def test_places_change_limits_severity_and_owner_where_they_say(tmp_path):
    build(tmp_path, _read(tmp_path, PLACES))
    everywhere = [
        ("shop", "prod", "pay"),
        ("shop", "prod", "flaky"),  # 40 is not reached
        ("shop", "staging", "pay"),
        ("shop", "staging", "flaky"),
        ("sandbox", "prod", "pay"),  # switched off
        ("sandbox", "prod", "serious"),
    ]
    _passes(tmp_path, CASES.replace("SERIES", ", ".join(_series(*one) for one in everywhere)))


def _passes(tmp_path, cases):
    test = tmp_path / "places.yml"
    test.write_text(cases)
    checked = run("promtool", "check", "rules", *tmp_path.glob("*.rules.yml"))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    done = run("promtool", "test", "rules", test)
    assert done.returncode == 0, done.stdout + done.stderr


ONE_FIRES = (
    FIRING
    + """\
          - {labels: 'ALERTS{alertname="ToolfaultInternalErrorSpike",alertstate="firing",code="INTERNAL",signal="INTERNAL",severity="critical",PLACE}', value: 1}
"""
)


def _only_one_fires(tmp_path, place, series, at="12m"):
    cases = ONE_FIRES.replace("SERIES", ", ".join(series)).replace("PLACE", place)
    _passes(tmp_path, cases.replace("eval_time: 12m", f"eval_time: {at}"))


ONLY_PAY = """
alerts:
  internal_error_spike: {enabled: false}
places:
  - service: shop
    tool: pay
    alerts:
      internal_error_spike: {enabled: true}
  - service: shop
    environment: staging
    tool: pay
    alerts:
      internal_error_spike: {enabled: false}
"""


def test_an_alert_that_is_switched_off_everywhere_can_be_on_in_one_place(tmp_path):
    spec = _read(tmp_path, ONLY_PAY)
    build(tmp_path, spec)
    assert "## ToolfaultInternalErrorSpike" in outputs(spec)["runbooks.md"]
    everywhere = [
        ("shop", "prod", "pay"),
        ("shop", "prod", "other"),
        ("shop", "staging", "pay"),
        ("bank", "prod", "pay"),
    ]
    _only_one_fires(
        tmp_path,
        'service="shop",environment="prod",tool="pay"',
        [_series(*one) for one in everywhere],
    )


EASILY = """
places:
  - service: vault
    alerts:
      internal_error_spike: {burst: 4}
"""


def test_a_place_that_pages_on_fewer_errors_than_elsewhere_is_counted(tmp_path):
    build(tmp_path, _read(tmp_path, EASILY))
    # n = 300, E = 0.03, k = 4 in one stretch: S = 15.6 everywhere
    series = [_series(service, "prod", "open", "4x20", 0.0001) for service in ("vault", "shop")]
    _only_one_fires(tmp_path, 'service="vault",environment="prod",tool="open"', series)


FEWER_APART = """
places:
  - service: vault
    alerts:
      internal_error_spike: {apart: 2}
"""


def test_in_a_place_fewer_errors_in_each_stretch_can_be_enough(tmp_path):
    build(tmp_path, _read(tmp_path, FEWER_APART))
    # two at 10m30s, two at 12m30s; n = 300, E = 0.03, k = 4: S = 15.6 everywhere
    series = [_series(service, "prod", "open", "2x3 4x16", 0.0001) for service in ("vault", "shop")]
    place = 'service="vault",environment="prod",tool="open"'
    _only_one_fires(tmp_path, place, series, at="13m30s")


LOWER = """
alerts:
  policy_refusals_elevated: {enabled: false}
places:
  - service: vault
    alerts:
      KEY: {floor: 0.0005, buckets: 2, severity: critical, enabled: true}
  - service: vault
    environment: staging
    alerts:
      KEY: {enabled: false}
"""
#: Of 36,000 calls 30, in two stretches, where 3.6 were usual: 0.08 %, S = 37.2.
SELDOM = """
rule_files: [FILE]
evaluation_interval: PACE
group_eval_order: [GROUPS]
tests:
  - interval: PACE
    input_series:
      - {series: 'up{job="j",instance="a"}', values: 1x20}
SERIES
    promql_expr_test:
      - expr: ALERTS{alertname="NAME"}
        eval_time: LATER
        exp_samples:
          - {labels: 'ALERTS{alertname="NAME",alertstate="firing",severity="critical",LABEL,signal="SIGNAL",service="vault",environment="prod",tool="open"}', value: 1}
"""
RARE = """\
      - {series: 'toolfault_tool_call_duration_seconds_count{job="j",instance="a",PLACE}', values: 0+3000x20}
      - {series: 'toolfault_tool_calls_total{job="j",instance="a",PLACE,COUNTED}', values: 0x10 15 30x8}
      - {series: 'service_environment_tool_signal:USUAL{PLACE,signal="SIGNAL"}', values: 0.0001x20}
"""
LASTING = {
    "KEY": "internal_errors_elevated",
    "FILE": "toolfault-tools-long.rules.yml",
    "GROUPS": "toolfault-tool-long",
    "PACE": "5m",
    "LATER": "1h",
    "USUAL": "toolfault_baseline:ratio1h",
    "COUNTED": 'outcome="failed",code="INTERNAL"',
    "LABEL": 'code="INTERNAL"',
    "SIGNAL": "INTERNAL",
}
TICKET = {
    "KEY": "policy_refusals_elevated",
    "FILE": "toolfault-tickets.rules.yml",
    "GROUPS": "toolfault-ticket, toolfault-ticket-alerts",
    "PACE": "30m",
    "LATER": "6h",
    "USUAL": "toolfault_slow_baseline:ratio6h",
    "COUNTED": 'outcome="refused",code="PERMISSION_DENIED"',
    "LABEL": 'outcome="refused"',
    "SIGNAL": "REFUSED",
}


@pytest.mark.parametrize("texts", [LASTING, TICKET], ids=["lasting", "ticket"])
def test_a_place_with_a_lower_floor_and_fewer_stretches_is_recorded_and_told(tmp_path, texts):
    build(tmp_path, _read(tmp_path, LOWER.replace("KEY", texts["KEY"])))
    places = (("vault", "prod"), ("vault", "staging"), ("shop", "prod"))
    named = [f'service="{one}",environment="{other}",tool="open"' for one, other in places]
    cases = SELDOM.replace("SERIES", "".join(RARE.replace("PLACE", place) for place in named))
    for mark, text in {**texts, "NAME": alert_name(texts["KEY"])}.items():
        cases = cases.replace(mark, text)
    _passes(tmp_path, cases)


OFF = "alerts:\n" + "".join(f"  {key}: {{enabled: false}}\n" for key in Alerts.__slots__)


def test_without_any_alert_the_rules_are_still_rules(tmp_path):
    build(tmp_path, _read(tmp_path, OFF))
    checked = run("promtool", "check", "rules", "--lint-fatal", *tmp_path.glob("*.rules.yml"))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert not any("alert:" in path.read_text() for path in tmp_path.glob("*.rules.yml"))


def test_an_alert_that_is_switched_off_is_left_out_everywhere(tmp_path):
    spec = _read(tmp_path, "alerts:\n  unguarded_error: {enabled: false}\n")
    assert "ToolfaultUnguardedError" not in json.dumps(files(spec))
    assert "ToolfaultUnguardedError" not in outputs(spec)["runbooks.md"]

"""`toolfault dashboards build`: the files, from the settings that the alerts are built from."""

import json
import subprocess
import sys

import yaml

from toolfault.alerts.spec import Spec
from toolfault.alerts.windows import Baseline, Windows
from toolfault.dashboards.build import outputs


def _built(folder, *arguments):
    command = [
        sys.executable,
        "-m",
        "toolfault.cli",
        "dashboards",
        "build",
        str(folder),
        *arguments,
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_it_writes_every_file_and_names_it(tmp_path):
    told = _built(tmp_path / "new")
    assert (told.returncode, told.stderr) == (0, "")
    written = {
        str(p.relative_to(tmp_path / "new")): p.read_text() for p in (tmp_path / "new").rglob("*.*")
    }
    assert written == outputs(Spec())
    assert told.stdout.splitlines() == [str(tmp_path / "new" / name) for name in outputs(Spec())]


def test_links_and_limits_are_those_of_the_settings(tmp_path):
    settings = tmp_path / "alerts.yml"
    settings.write_text(
        "links: {toolfault: 'https://errors.example'}\n"
        "alerts: {internal_error_spike: {nats: 21}}\n"
        "jobs: {replica_labels: [pod]}\n"
    )
    assert _built(tmp_path / "out", "--settings", str(settings)).returncode == 0
    text = (tmp_path / "out/on-call.json").read_text()
    panels = {panel["title"]: panel for panel in json.loads(text)["panels"]}
    drawn = panels["ToolfaultInternalErrorSpike: surprise (nats)"]["fieldConfig"]["defaults"]
    assert drawn["thresholds"]["steps"][1]["value"] == 21
    assert "> 21" in panels["ToolfaultInternalErrorSpike: condition met"]["targets"][0]["expr"]
    assert "https://errors.example/errors?" in text
    assert "localhost:8700" not in text
    assert "max without (pod) (" in (tmp_path / "out/tool.json").read_text()


def test_windows_of_the_same_length_do_not_hide_one_another():
    spec = Spec(windows=Windows(slow="1h"), baseline=Baseline(learned="20m"))
    overview = outputs(spec)["overview.json"]
    assert "service_environment_tool_signal:toolfault:surprise1h" in overview
    assert "service_environment_tool_signal:toolfault_slow:surprise1h" in overview


def test_a_mistake_in_the_settings_is_a_sentence(tmp_path):
    (tmp_path / "alerts.yml").write_text("alerts: {internal_error_spike: {nats: many}}\n")
    told = _built(tmp_path / "out", "--settings", str(tmp_path / "alerts.yml"))
    assert told.returncode != 0
    assert "Traceback" not in told.stderr
    assert "internal_error_spike" in told.stderr


def test_without_grafanalib_the_extra_is_named(tmp_path):
    hidden = "import sys; sys.modules['grafanalib'] = None; from toolfault.cli import main; main()"
    told = subprocess.run(
        [sys.executable, "-c", hidden, "dashboards", "build", str(tmp_path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert told.returncode == 1
    assert told.stderr == (
        "toolfault: the package grafanalib is not installed. This command needs the dashboards extra: "
        'pip install "toolfault[dashboards]"\n'
    )


def test_data_sources_have_the_names_that_the_pages_choose_and_exemplars_lead_to_cards():
    files = outputs(Spec())
    prometheus, postgres = yaml.safe_load(files["provisioning/datasources/toolfault.yml"])[
        "datasources"
    ]
    variables = json.loads(files["overview.json"])["templating"]["list"]
    assert [one["uid"] for one in (prometheus, postgres)] == [
        one["current"]["value"] for one in variables if one["type"] == "datasource"
    ]
    [destination] = prometheus["jsonData"]["exemplarTraceIdDestinations"]
    # Grafana's provisioning reads one dollar as a variable of the environment, two as one.
    assert destination["name"] == "ref"
    assert destination["url"] == "http://localhost:8700/r/$${__value.raw}"
    assert postgres["user"] == "toolfault_read"
    assert postgres["secureJsonData"] == {
        "password": "$__file{/run/secrets/toolfault_read_password}"
    }


def test_pages_are_read_only_in_grafana():
    [provider] = yaml.safe_load(outputs(Spec())["provisioning/dashboards/toolfault.yml"])[
        "providers"
    ]
    assert provider["allowUiUpdates"] is False
    assert provider["options"] == {"path": "/etc/grafana/dashboards/toolfault"}

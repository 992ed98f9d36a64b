"""docker-compose.yml, run natively: from an agent to the card, from a burst to the incident, support.

Not run here: Grafana, the images, networks, limits and read-only file systems.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import psycopg
import pytest
import yaml
from psycopg import errors
from tests.chaos.database import until
from tests.end_to_end.harness import environment
from tests.stack.native import ROOT, Stack, resolved

from toolfault.demo.monitoring import FAST

pytestmark = pytest.mark.timeout(300)
_SECRETS = re.compile(r"<!-- run: secrets -->\n```console\n(.*?)```", re.DOTALL)
#: The shipped alerts at a demo's speed, as one's own settings file would say it.
_FAST = {
    "stack": {"every": "2s"},
    "windows": asdict(FAST.windows),
    "baseline": asdict(FAST.baseline),
    "waits": asdict(FAST.waits),
    "alerts": {
        "internal_error_spike": {"wait": "0s", "keep": "60s"},
        # a card shows the newest incident: without these two that is the one about the burst
        "new_internal_error_group": {"enabled": False},
        "internal_errors_elevated": {"enabled": False},
    },
}


def _run(*command, **options):
    options = {"env": environment(), **options}
    done = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, check=False, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder():
    """Where the stack runs; PostgreSQL, which is not root, must be able to enter it."""
    with tempfile.TemporaryDirectory(prefix="toolfault-stack-") as made:
        Path(made).chmod(0o755)
        yield Path(made)


@pytest.fixture(scope="module")
def wheel_environment(folder):
    """What the Dockerfile does: the wheel from just what it copies, with the versions of the lock."""
    for line in re.findall(r"^COPY (?!--)(.*)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE):
        *sources, _ = line.split()
        for source in sources:
            copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copy
            (folder / "src").mkdir(exist_ok=True)
            copy(ROOT / source, folder / "src" / source)
    uv, made = [sys.executable, "-m", "uv"], folder / "environment"
    _run(*uv, "build", "--quiet", "--python", sys.executable, "--wheel", "--no-build-isolation",
         "--out-dir", folder / "dist", cwd=folder / "src")  # fmt: skip
    (wheel,) = (folder / "dist").glob("*.whl")
    _run(*uv, "venv", "--quiet", "--python", sys.executable, made)
    _run(*uv, "pip", "install", "--quiet", "--python", made / "bin/python", "--constraint",
         ROOT / "requirements.lock", f"toolfault[server] @ {wheel.as_uri()}",
         env=environment(UV_SYSTEM_CERTS="true"))  # fmt: skip
    return made


@pytest.fixture(scope="module")
def told():
    """What people are told: everything posted to the pager, the chat and the dead man's switch."""
    posted = []

    class People(BaseHTTPRequestHandler):
        def do_POST(self):
            posted.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), People) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield posted, f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture(scope="module")
def alerts(folder, wheel_environment, told):
    """Alerts of one's own, as docs/alerting.md says."""
    settings = folder / "alerts-settings.yml"
    settings.write_text(json.dumps(_FAST | {"receivers": {"dead_mans_switch": told[1]}}))
    made = folder / "alerts"
    _run(wheel_environment / "bin/toolfault", "alerts", "build", made, "--settings", settings)
    config = yaml.safe_load((made / "alertmanager.yml").read_text())
    config["global"]["pagerduty_url"] = told[1]
    (made / "alertmanager.yml").write_text(yaml.safe_dump(config))
    return made


@pytest.fixture(scope="module")
def stack(folder, wheel_environment, alerts, told):
    (commands,) = _SECRETS.findall((ROOT / "docs" / "deploy.md").read_text())
    _run("bash", "-euc", commands, cwd=folder)
    (folder / "secrets" / "slack_url").write_text(told[1])
    (folder / "secrets" / "pagerduty_routing_key").write_text("visibly-fake")
    model = resolved(SECRETS_DIR=str(folder / "secrets"), ALERTS_DIR=str(alerts))
    with Stack(model, folder, wheel_environment).up() as running:
        yield running


def _token(stack, role):
    made = stack.run("toolfault", "token", "create", f"of-{role}", "--role", role, "--json")
    return json.loads(made)["secret"]


@pytest.fixture(scope="module")
def pages(stack):
    """Asks the look-up's API as somebody of a role."""
    tokens = {role: _token(stack, role) for role in ("support", "engineer")}

    def ask(role, path):
        headers = {"Authorization": f"Bearer {tokens[role]}"} if role else {}
        return httpx.get(stack.reach(f"http://toolfault:8700{path}"), headers=headers, timeout=30)

    return ask


@pytest.fixture(scope="module")
def conversation(stack):
    """What the demo's agent said of the calls that have a reference."""
    lines = [json.loads(line) for line in stack.run("scheduling-agent").splitlines()]
    return [line for line in lines if line.get("reference")]


@pytest.fixture(scope="module")
def crash(conversation):
    """The reference of the tool that raised what nobody had thought of."""
    (call,) = [call for call in conversation if call["tool"] == "summarise_week"]
    return call["reference"]


def _card(pages, role, reference):
    """The only call of a reference, as soon as it is here."""
    until(lambda: pages(role, f"/api/v1/references/{reference}").json()["matches"])
    (match,) = pages(role, f"/api/v1/references/{reference}").json()["matches"]
    return match


def test_services_start_in_the_order_they_wait_for_each_other(stack):
    order = stack.order()
    assert [name for name in order if name in ("postgres", "migrate", "toolfault", "prometheus")] == [
        "postgres", "migrate", "toolfault", "prometheus",
    ]  # fmt: skip
    assert set(order) == {
        "postgres", "migrate", "ingest-token", "scrape-token",
        "toolfault", "otel-collector", "alertmanager", "prometheus",
    }  # fmt: skip


def test_what_an_agent_says_to_the_collector_is_on_the_card_of_each_reference(conversation, pages):
    assert len(conversation) == 8
    for call in conversation:
        card = _card(pages, "support", call["reference"])
        assert (card["tool"], card["outcome"], card["effect"]) == (
            call["tool"], call["outcome"], call["effect"],
        )  # fmt: skip
        assert card["environment"] == "demo"


def test_support_sees_no_exception_detail_and_an_engineer_does(crash, pages):
    until(lambda: _card(pages, "engineer", crash)["exceptions"])
    support, engineer = (_card(pages, role, crash) for role in ("support", "engineer"))
    assert support["words"] == engineer["words"]
    assert engineer["exceptions"][0]["stacktrace"]
    assert not engineer["detail_withheld"]
    assert (support["exceptions"], support["log_lines"]) == ([], [])
    assert support["detail_withheld"]


def test_support_looks_a_reference_up_from_the_command_line(stack, crash, wheel_environment, pages):
    done = _run(
        wheel_environment / "bin/toolfault", "lookup", f"It failed (ref {crash}).", "--json",
        env=environment(
            TOOLFAULT_URL=stack.reach("http://toolfault:8700"), TOOLFAULT_TOKEN=_token(stack, "support")
        ),
    )  # fmt: skip
    assert [match["tool"] for match in json.loads(done)["matches"]] == ["summarise_week"]


def test_who_has_no_token_sees_nothing(crash, pages):
    assert pages(None, f"/api/v1/references/{crash}").status_code == 401


def test_a_burst_wakes_somebody_and_is_an_incident_on_the_card(stack, pages, told):
    first, *_ = stack.run("reporting-agent", "--calm", "6").split()
    until(lambda: _card(pages, "support", first).get("incident"))
    incident = _card(pages, "support", first)["incident"]
    assert incident["name"] == "ToolfaultInternalErrorSpike"
    assert incident["summary"] == (
        "INTERNAL errors of summarise are far above the usual level: most likely a bug."
    )
    until(lambda: any(incident["summary"] in post for post in told[0]))


def _targets(stack):
    found = httpx.get(stack.reach("http://prometheus:9090/api/v1/targets")).json()["data"]
    return {each["labels"]["job"]: each for each in found["activeTargets"]}


def test_prometheus_reaches_everything_it_should(stack):
    until(lambda: {each["health"] for each in _targets(stack).values()} == {"up"})
    assert set(_targets(stack)) == {"toolfault", "toolfault-tools", "otel-collector"}


def test_the_role_for_grafana_reads_calls_and_no_tokens(stack):
    grafana = resolved()["services"]["grafana"]["environment"]
    host, port = stack.reach(grafana["TOOLFAULT_POSTGRES_ADDRESS"]).split(":")
    password = stack.place("migrate", "/run/secrets/toolfault_read_password").read_text().strip()
    with psycopg.connect(
        host=host, port=port, user="toolfault_read", password=password,
        dbname=grafana["TOOLFAULT_POSTGRES_DATABASE"], sslmode=grafana["TOOLFAULT_POSTGRES_SSLMODE"],
    ) as conn:  # fmt: skip
        assert conn.execute("SELECT count(*) > 0 FROM tool_call").fetchone() == (True,)
        with pytest.raises(errors.InsufficientPrivilege):
            conn.execute("SELECT * FROM api_token")


def test_starting_everything_once_more_changes_no_token(stack):
    before = stack.run("toolfault", "token", "list", "--json")
    for name in ("migrate", "ingest-token", "scrape-token"):
        stack.run(name)
    assert stack.run("toolfault", "token", "list", "--json") == before


def test_tokens_are_replaced_while_everything_runs(stack, pages):
    old = {
        t["id"]: t["name"] for t in json.loads(stack.run("toolfault", "token", "list", "--json"))
    }
    for service in ("ingest-token", "scrape-token"):
        stack.run(service, *stack.services[service]["command"], "--replace")
    for id_, name in old.items():
        if name in ("otel-collector", "prometheus"):
            stack.run("toolfault", "token", "revoke", id_)

    again = [json.loads(line) for line in stack.run("scheduling-agent").splitlines()]
    reference = next(line["reference"] for line in again if line.get("reference"))
    assert _card(pages, "support", reference)
    before = _targets(stack)["toolfault"]["lastScrape"]
    until(lambda: _targets(stack)["toolfault"]["lastScrape"] > before)
    assert {each["health"] for each in _targets(stack).values()} == {"up"}


def test_the_collector_has_not_complained(stack):
    lines = []
    for line in stack.log("otel-collector").splitlines():
        with suppress(json.JSONDecodeError):
            lines.append(json.loads(line))
    assert lines
    assert [line for line in lines if line["level"] != "info"] == []

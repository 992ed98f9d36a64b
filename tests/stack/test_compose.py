"""docker-compose.yml and the Dockerfiles, held against their specifications and our own rules.

The images themselves are not built or run here; `test_journeys.py` runs what is in ours natively.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.stack.native import NOT_RUN, ROOT, resolved

from toolfault.store.embedded import _SETTINGS

TEXT = (ROOT / "docker-compose.yml").read_text()
GUIDE = (ROOT / "docs" / "deploy.md").read_text()
DOCKERFILES = [ROOT / "Dockerfile", ROOT / "collector" / "Dockerfile"]
MODEL = resolved()
SERVICES = MODEL["services"]
STAY = [name for name, service in SERVICES.items() if service["restart"] == "unless-stopped"]
OURS = {"toolfault", "otelcol-toolfault"}


def test_the_specifications_own_library_takes_the_file_without_a_warning():
    assert MODEL["name"] == "toolfault"
    assert set(SERVICES) == {
        "postgres", "migrate", "ingest-token", "scrape-token", "toolfault", "otel-collector",
        "prometheus", "alertmanager", "grafana", "scheduling-agent", "reporting-agent",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        ("    stop_grace_period: 30s", "    stop_graceperiod: 30s", "stop_graceperiod"),
        ("shm_size: 256m", "shm_size: [256]", "shm_size"),
        ("{ condition: service_healthy }", "{ condition: healthy }", "condition"),
        ('cpus: "2"', "cpus: true", "cpus"),
    ],
)
def test_the_library_would_see_a_mistake(right, wrong, told):
    assert right in TEXT
    with pytest.raises(ValueError, match=told):
        resolved(TEXT.replace(right, wrong))


@pytest.mark.parametrize("name", SERVICES)
def test_what_a_service_names_is_there(name):
    service = SERVICES[name]
    assert set(service.get("depends_on", {})) <= set(SERVICES)
    assert set(service["networks"]) <= set(MODEL["networks"])
    assert {secret["source"] for secret in service.get("secrets", ())} <= set(MODEL["secrets"])
    for volume in service.get("volumes", ()):
        if volume["type"] == "volume":
            assert volume["source"] in MODEL["volumes"]
        else:
            assert Path(volume["source"]).exists()


@pytest.mark.parametrize("folder", ["mine", "./mine", "mine/made"])
def test_files_of_ones_own_are_mounted_however_their_folder_is_written(folder):
    own = resolved(ALERTS_DIR=folder, DASHBOARDS_DIR=folder)["services"]
    volumes = [
        v for name in ("prometheus", "alertmanager", "grafana") for v in own[name]["volumes"]
    ]
    mounts = {v["target"]: v for v in volumes if v["type"] == "bind"}
    assert {target: mount["source"] for target, mount in mounts.items()} == {
        "/etc/prometheus": str(ROOT / folder),
        "/etc/alertmanager/alertmanager.yml": str(ROOT / folder / "alertmanager.yml"),
        "/etc/grafana/provisioning": str(ROOT / folder / "provisioning"),
        "/etc/grafana/dashboards/toolfault": str(ROOT / folder),
    }
    assert all(mount["read_only"] for mount in mounts.values())


def test_another_postgresql_is_reached_with_the_override_of_the_guide():
    [override] = re.findall(r"<!-- run: override -->\n```yaml\n(.*?)```", GUIDE, re.DOTALL)
    model = resolved(override=override)
    assert "postgres" not in model["services"]
    for service in model["services"].values():
        assert "postgres" not in service.get("depends_on", {})
    assert not model["networks"]["store"]["internal"]
    told = model["services"]["grafana"]["environment"]
    assert "TOOLFAULT_POSTGRES_ADDRESS=db.example.com:5432" in told
    assert "TOOLFAULT_POSTGRES_DATABASE=toolfault" in told


def test_the_settings_of_the_guide_without_docker_lead_prometheus_everywhere(tmp_path, toolfault):
    [text] = re.findall(r"<!-- run: settings -->\n```yaml\n(.*?)```", GUIDE, re.DOTALL)
    (tmp_path / "alerts.yml").write_text(text)
    made = toolfault("alerts", "build", str(tmp_path), "--settings", str(tmp_path / "alerts.yml"))
    assert made[0] == 0, made
    config = yaml.safe_load((tmp_path / "prometheus.yml").read_text())
    jobs = {job["job_name"]: job for job in config["scrape_configs"]}
    assert {name: job["static_configs"][0]["targets"] for name, job in jobs.items()} == {
        "toolfault": ["127.0.0.1:8700"],
        "toolfault-tools": ["127.0.0.1:8700"],
        "otel-collector": ["127.0.0.1:8888"],
    }
    token = {"credentials_file": "/etc/toolfault/scrape"}
    assert jobs["toolfault"]["authorization"] == jobs["toolfault-tools"]["authorization"] == token


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_has_no_more_rights_than_it_needs(name):
    service = SERVICES[name]
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not service.get("privileged")
    assert not service["user"].startswith(("0:", "root"))
    assert not service.get("cap_add")
    limits = service["deploy"]["resources"]["limits"]
    assert set(limits) == {"cpus", "memory", "pids"}


@pytest.mark.parametrize("name", SERVICES)
def test_an_image_has_an_exact_version(name):
    image, _, tag = SERVICES[name]["image"].partition(":")
    assert re.fullmatch(r"v?\d+\.\d+(\.\d+)?", tag), image
    # what another service builds is not looked for in a registry
    ours = "build" in SERVICES[name] or SERVICES[name].get("pull_policy") == "never"
    assert ours == (image in OURS)


def test_each_image_of_ours_is_built_by_one_service():
    built = [s["image"].partition(":")[0] for s in SERVICES.values() if "build" in s]
    assert sorted(built) == sorted(OURS)


@pytest.mark.parametrize("file", DOCKERFILES, ids=lambda file: file.parent.name)
def test_what_an_image_is_built_from_has_an_exact_version(file):
    bases = re.findall(r"^FROM (\S+)", file.read_text(), re.MULTILINE)
    assert len(bases) == 2
    for base in bases:
        assert re.fullmatch(r"[a-z/]+:\d+\.\d+\.\d+(-[a-z-]+)?", base)


@pytest.mark.parametrize("name", STAY)
def test_what_stays_up_is_asked_for_its_health(name):
    check = SERVICES[name]["healthcheck"]
    assert check["test"][0] == "CMD"
    assert {"interval", "timeout", "retries", "start_period"} <= set(check)


def test_every_other_service_ends_by_itself():
    assert set(SERVICES) - set(STAY) == {
        "migrate", "ingest-token", "scrape-token", "scheduling-agent", "reporting-agent",
    }  # fmt: skip


def test_ports_are_open_to_this_machine_alone():
    published = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert len(published) == 6
    assert {port["host_ip"] for port in published} == {"127.0.0.1"}


def test_the_database_is_on_a_network_without_a_way_out():
    assert MODEL["networks"]["store"]["internal"]
    assert set(SERVICES["postgres"]["networks"]) == {"store"}
    beside = {name for name, service in SERVICES.items() if "store" in service["networks"]}
    assert beside == {"postgres", "migrate", "ingest-token", "scrape-token", "toolfault", "grafana"}


def test_each_service_sees_the_secrets_it_needs_and_no_others():
    def seen(name):
        secrets = {secret["source"] for secret in SERVICES[name].get("secrets", ())}
        tokens = {
            v["source"] for v in SERVICES[name].get("volumes", ()) if v["target"] == "/run/tokens"
        }
        return secrets | tokens

    assert {name: seen(name) for name in SERVICES} == {
        "postgres": {"postgres_password"},
        "migrate": {"database_url", "toolfault_read_password"},
        "ingest-token": {"database_url", "ingest-token"},
        "scrape-token": {"database_url", "scrape-token"},
        "toolfault": {"database_url"},
        "otel-collector": {"ingest-token"},
        "prometheus": {"scrape-token"},
        "alertmanager": {"scrape-token", "pagerduty_routing_key", "slack_url"},
        "grafana": {"grafana_admin_password", "toolfault_read_password"},
        "scheduling-agent": set(),
        "reporting-agent": set(),
    }


def test_alertmanager_and_prometheus_see_every_file_that_they_are_told_to_read():
    for name in ("alertmanager", "prometheus"):
        config = (ROOT / "alerts" / f"{name}.yml").read_text()
        read = set(re.findall(r"(?:_key|_url|credentials)_file: (\S+)", config))
        secrets = {secret["target"] for secret in SERVICES[name].get("secrets", ())}
        assert read == secrets | {"/run/tokens/scrape"}


def test_no_secret_stands_in_the_environment():
    for service in SERVICES.values():
        for name, value in service.get("environment", {}).items():
            if re.search("PASSWORD|TOKEN|SECRET|KEY|DATABASE_URL", name):
                assert name.endswith("_FILE")
                assert value.startswith(("/run/secrets/", "/run/tokens/"))


def test_postgres_has_the_settings_that_the_embedded_one_has():
    flags = dict(f.removeprefix("--").split("=") for f in SERVICES["postgres"]["command"][1:])
    others = {"listen_addresses", "unix_socket_directories", "log_checkpoints"}
    assert flags == {name: value for name, value in _SETTINGS.items() if name not in others}


def test_the_example_of_the_environment_holds_every_variable_with_its_default():
    used = dict(re.findall(r"\$\{(\w+):-([^}]*)\}", TEXT))
    example = (ROOT / ".env.example").read_text()
    assert dict(re.findall(r"^(\w+)=(.*)$", example, re.MULTILINE)) == used
    # a variable of this prefix would be taken for a setting of the service
    assert not [name for name in used if name.startswith("TOOLFAULT_")]


def test_grafana_which_is_not_run_here_finds_its_files_where_its_provisioning_looks():
    service = SERVICES["grafana"]
    assert {"grafana/grafana"} == NOT_RUN
    mounts = {v["target"]: v["source"] for v in service["volumes"]}
    assert mounts["/etc/grafana/provisioning"] == str(ROOT / "dashboards/provisioning")
    folder = ROOT / "dashboards/provisioning"
    [provider] = yaml.safe_load((folder / "dashboards/toolfault.yml").read_text())["providers"]
    assert mounts[provider["options"]["path"]] == str(ROOT / "dashboards")
    sources = (folder / "datasources/toolfault.yml").read_text()
    assert set(re.findall(r"\$\{(\w+)\}", sources)) == {
        name for name in service["environment"] if name.startswith("TOOLFAULT_")
    }
    for file in re.findall(r"\$__file\{(.*)\}", sources):
        assert file in {secret["target"] for secret in service["secrets"]}
    types = json.loads((ROOT / "package-lock.json").read_text())["packages"]
    assert service["image"] == f"grafana/grafana:{types['node_modules/@grafana/schema']['version']}"


@pytest.mark.parametrize("file", DOCKERFILES, ids=lambda file: file.parent.name)
def test_hadolint_has_nothing_to_say(file):
    done = subprocess.run(
        [Path(sys.executable).parent / "hadolint", file],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_build_gets_the_files_that_the_dockerfile_copies_and_no_others():
    allowed = re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    copies = re.findall(r"^COPY (?!--)(.*) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert sorted(allowed) == sorted(source for line in copies for source in line.split())


@pytest.mark.parametrize("file", DOCKERFILES, ids=lambda file: file.parent.name)
def test_an_image_runs_as_the_user_that_compose_says(file):
    [user] = re.findall(r"^USER (\S+)$", file.read_text(), re.MULTILINE)
    [image] = [
        s["image"]
        for s in SERVICES.values()
        if s.get("build", {}).get("context") == str(file.parent)
    ]
    assert {s["user"] for s in SERVICES.values() if s["image"] == image} == {user}


def test_the_images_version_is_the_projects():
    [version] = re.findall(
        r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE
    )
    assert SERVICES["toolfault"]["image"] == f"toolfault:{version}"
    builder = yaml.safe_load((ROOT / "collector/builder.yaml").read_text())
    assert SERVICES["otel-collector"]["image"] == f"otelcol-toolfault:{builder['dist']['version']}"

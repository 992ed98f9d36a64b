"""docker-compose.yml without Docker: the same programs, commands, environment, files and order.

Every service has an address of its own on loopback. In what it is given, its own `127.0.0.1` and the
others' names become addresses, and where something is mounted becomes a place in a folder.
"""

import json
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import ExitStack, contextmanager
from graphlib import TopologicalSorter
from pathlib import Path
from unittest.mock import patch

import psycopg
from psycopg import sql

from toolfault.store import embedded

ROOT = Path(__file__).parents[2]
COMPOSE = ROOT / "build" / "compose"
COLLECTOR = ROOT / "collector" / "build"
#: Images that nothing on this machine stands for.
NOT_RUN = {"grafana/grafana"}
_ENTRYPOINT = re.compile(r"^ENTRYPOINT (\[.*\])$", re.MULTILINE)
_WITHIN = 90.0  # s, for each service
_EVERY = 0.1


def resolved(text=None, override="{}", **variables):
    """A compose file of this folder, read by the compose specification's own library.

    Args:
        text: of the file; without it, the one we ship.
        override: text of a `docker-compose.override.yml`.
        variables: values in the place of defaults.
    """
    text = (ROOT / "docker-compose.yml").read_text() if text is None else text
    for name, value in variables.items():  # the library's command knows defaults only
        text = re.sub(rf"\$\{{{name}:-[^}}]*\}}", value, text)
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, "compose.yml"), Path(folder, "override.yml")]
        for file, content in zip(files, (text, override), strict=True):
            file.write_text(content)
        done = subprocess.run(
            [COMPOSE, "--format", "json", *files],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
    if done.returncode or done.stderr:
        raise ValueError(done.stderr)
    return json.loads(done.stdout)


class Stack:
    """The services of a resolved compose file.

    Args:
        model: the file.
        folder: for volumes, copies of mounted files, and logs; others must be able to enter it.
        environment: with the service's wheel installed.
    """

    def __init__(self, model, folder, environment):
        self.services = {
            name: service
            for name, service in model["services"].items()
            if _image(service) not in NOT_RUN
        }
        self._model, self._folder, self._bin = model, folder, environment / "bin"
        net = f"127.{random.randrange(1, 255)}.{random.randrange(255)}"  # noqa: S311
        self.address = {name: f"{net}.{n}" for n, name in enumerate(model["services"], 1)}
        self._mounts = {name: self._mounted(name) for name in self.services}
        for name in self.services:
            self._point_to_others(name)
        self._running, self._postgres = {}, None

    def order(self):
        """Services without a profile, each after those it waits for."""
        every = {
            n: s.get("depends_on", {}) for n, s in self.services.items() if "profiles" not in s
        }
        return [*TopologicalSorter(every).static_order()]

    @contextmanager
    def up(self):
        """`docker compose up --wait`, and `down`; each must end as it should."""
        with ExitStack() as stack:
            for name in self.order():
                self._await_others(name)
                if _is_once(self.services, name):
                    self.run(name)
                else:
                    self._start(name)
                    stack.callback(self._stop, name)
            for name in self._running:
                self._await_health(name)
            yield self

    def run(self, name, *arguments):
        """`docker compose run SERVICE ARGUMENTS`: what it printed."""
        done = subprocess.run(
            self._command(name, arguments), env=self._environment(name),
            cwd=self._folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{name}: {done.stdout}{done.stderr}"
        return done.stdout

    def place(self, name, target):
        """Where something of a service is that it sees at `target`."""
        return Path(self._native(name, target))

    def log(self, name):
        return (self._folder / f"{name}.log").read_text()

    def reach(self, text):
        """`text` with the services' names as addresses."""
        for name, address in self.address.items():
            text = re.sub(rf"(?<![\w.-]){name}(?=:\d+(?!\w))", address, text)
        return text

    def _mounted(self, name):
        """What stands for each mount, longest target first."""
        service, found = self.services[name], {}
        for secret in service.get("secrets", ()):
            target = secret.get("target", "")
            target = (
                target if target.startswith("/") else f"/run/secrets/{target or secret['source']}"
            )
            source = Path(self._model["secrets"][secret["source"]]["file"])
            found[target] = self._copy(name, source, target)
        for volume in service.get("volumes", ()):
            target = volume["target"]
            if volume["type"] == "volume":
                found[target] = self._folder / "volumes" / volume["source"]
                found[target].mkdir(parents=True, exist_ok=True)
            else:
                found[target] = self._copy(name, Path(volume["source"]), target)
        return dict(sorted(found.items(), key=lambda mount: -len(mount[0])))

    def _copy(self, name, source, target):
        """A copy of a file or folder that is mounted, with addresses in the place of names."""
        copy = self._folder / "mounted" / name / target.strip("/").replace("/", "-")
        files = [source] if source.is_file() else [*source.rglob("*")]
        for file in files:
            if file.is_file():
                to = copy / file.relative_to(source) if file != source else copy
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, to)
        return copy

    def _point_to_others(self, name):
        for place in self._mounts[name].values():
            if "mounted" not in place.parts:
                continue
            for file in [place] if place.is_file() else [*place.rglob("*")]:
                if file.is_file() and file.suffix in ("", ".yml", ".yaml"):
                    file.write_text(self._elsewhere(name, self.reach(file.read_text())))

    def _elsewhere(self, name, text):
        for target, place in self._mounts[name].items():
            text = re.sub(rf"(?<![\w.]){re.escape(target)}(?![\w-])", str(place), text)
        return text

    def _native(self, name, text):
        own = re.sub(
            r"(?<![\w.])(?:0\.0\.0\.0|127\.0\.0\.1|localhost)(?![\w.])", self.address[name], text
        )
        return self._elsewhere(name, self.reach(own))

    def _environment(self, name):
        told = {
            k: self._native(name, v) for k, v in self.services[name].get("environment", {}).items()
        }
        if "TOOLFAULT_HOST" in told:
            # The service asks for no token on loopback. This spelling of the same address it takes
            # for another machine's name, as 0.0.0.0 would be.
            *net, third, last = told["TOOLFAULT_HOST"].split(".")
            told["TOOLFAULT_HOST"] = ".".join([*net, str(int(third) * 256 + int(last))])
            told["GRPC_DNS_RESOLVER"] = "native"
        path = f"{self._bin}:{COLLECTOR}:/usr/local/bin:/usr/bin:/bin"
        return {"PATH": path, "HOME": str(self._folder)} | told

    def _command(self, name, arguments=()):
        service = self.services[name]
        entrypoint = service.get("entrypoint") or self._entrypoint(service)
        command = [*entrypoint, *(arguments or service.get("command") or ())]
        return self._found([self._native(name, part) for part in command], name)

    def _entrypoint(self, service):
        """Of an image of ours, from its Dockerfile; else the program is named like the image."""
        for other in self.services.values():
            if "build" in other and other["image"] == service["image"]:
                text = (Path(other["build"]["context"]) / "Dockerfile").read_text()
                return json.loads(_ENTRYPOINT.findall(text)[-1])
        name = _image(service).rpartition("/")[2]
        return [next(p for p in (f"prometheus-{name}", name) if shutil.which(p))]

    def _found(self, command, name):
        """With the program's path: a child's PATH does not find the child."""
        program = shutil.which(command[0], path=self._environment(name)["PATH"])
        assert program, f"{command[0]} is not installed"
        return [program, *command[1:]]

    def _start(self, name):
        if _image(self.services[name]) == "postgres":
            self._running[name] = self._start_postgres(name)
            return
        with (self._folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                self._command(name), env=self._environment(name), cwd=self._folder, stdout=log, stderr=log
            )  # fmt: skip

    def _start_postgres(self, name):
        """The embedded one, listening where the others look for it, with the file's settings."""
        service = self.services[name]
        self._postgres = embedded.EmbeddedPostgres(self.place(name, "/var/lib/postgresql"))
        password = self.place(name, service["environment"]["POSTGRES_PASSWORD_FILE"]).read_text()
        with psycopg.connect(self._postgres.start()) as conn:
            conn.execute(sql.SQL("ALTER ROLE toolfault PASSWORD {}").format(password.strip()))
        self._postgres.stop()
        settings = dict(flag.removeprefix("--").split("=") for flag in service["command"][1:])
        settings |= {"listen_addresses": self.address[name], "unix_socket_directories": ""}
        with patch.dict(embedded._SETTINGS, settings, clear=True):
            assert self._postgres._launch(5432)
        return self._postgres._server

    def _stop(self, name):
        process = self._running.pop(name)
        if _image(self.services[name]) == "postgres":
            self._postgres.stop()
            return
        process.send_signal(signal.SIGTERM)
        code = process.wait(60)
        assert code == 0, f"{name} ended with {code}: {self.log(name)}"

    def _await_others(self, name):
        for other, how in self.services[name].get("depends_on", {}).items():
            if how["condition"] == "service_healthy":
                self._await_health(other)
            else:  # those that are done were waited for
                assert how["condition"] == "service_completed_successfully"

    def _await_health(self, name):
        deadline = time.monotonic() + _WITHIN
        while not self._is_healthy(name):
            assert self._running[name].poll() is None, f"{name} ended: {self.log(name)}"
            assert time.monotonic() < deadline, f"{name} is not healthy: {self.log(name)}"
            time.sleep(_EVERY)

    def _is_healthy(self, name):
        kind, *command = self.services[name]["healthcheck"]["test"]
        assert kind == "CMD"
        if command[0] == "pg_isready":
            command[0] = str(self._postgres._programs / command[0])
        command = self._found([self._native(name, part) for part in command], name)
        environment = self._environment(name)
        return (
            subprocess.run(command, env=environment, capture_output=True, check=False).returncode
            == 0
        )


def _image(service):
    return service["image"].rpartition(":")[0]


def _is_once(services, name):
    """Whether others wait for its end."""
    waits = [other.get("depends_on", {}).get(name, {}) for other in services.values()]
    return any(wait.get("condition") == "service_completed_successfully" for wait in waits)

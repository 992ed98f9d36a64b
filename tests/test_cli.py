"""The command: every example is there, every mistake of a user is a sentence and an exit code."""

import json
import logging
import signal
import socket
import subprocess
import sys
from importlib.metadata import version

import psycopg
import pytest
import typer
from tests.end_to_end.harness import Service, environment, new_database, running

from toolfault.cli import app as commands
from toolfault.store import schema


@pytest.fixture(scope="module")
def service(postgres):
    """A running service without any call."""
    url = new_database(postgres, "cli")
    with running(TOOLFAULT_DATABASE_URL=url) as addresses:
        yield Service(url, **addresses)


@pytest.fixture
def up(toolfault):
    """Runs `toolfault up`, which is expected to end at once: exit code, errors."""
    signals = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    logger = logging.getLogger()
    handlers, level = logger.handlers[:], logger.level

    def run(*arguments, **variables):
        ports = ("--grpc-port", "0", "--http-port", "0", "--web-port", "0")
        code, _, err = toolfault("up", *ports, *map(str, arguments), **variables)
        return code, err

    yield run
    for number, handler in signals.items():
        signal.signal(number, handler)
    logger.handlers[:] = handlers
    logger.setLevel(level)


def _every_command(group, *path):
    for name, command in getattr(group, "commands", {}).items():
        yield from _every_command(command, *path, name)
    if not hasattr(group, "commands"):
        yield path, command_help(group)


def command_help(command):
    return command.help or ""


ALL = dict(_every_command(typer.main.get_command(commands.app)))


@pytest.mark.parametrize("path", sorted(ALL), ids=" ".join)
def test_every_command_has_an_example_in_its_help(path):
    assert f"Example: toolfault {' '.join(path)}" in ALL[path].replace(
        "TOOLFAULT_DATABASE_URL=postgresql://... ", ""
    )


def test_an_unknown_reference_ends_with_1(service, toolfault):
    code, out, _ = toolfault("lookup", "no-such-ref", "--url", service.web, "--json")

    assert code == 1
    assert json.loads(out)["state"] == "unknown"


def test_a_mistyped_reference_is_told_so(service, toolfault):
    code, out, _ = toolfault("lookup", "938N-KRKA-S18Q", "--url", service.web)

    assert code == 1
    assert "938N-KRKA-S18Q" in out


def test_a_reference_that_did_not_arrive_is_no_dead_end(service, toolfault):
    # The contract's vector, issued on 2026-11-30.
    code, out, _ = toolfault("lookup", "938N-KRKA-S18P", "--url", service.web, "--json")

    assert code == 1
    assert json.loads(out)["state"] in ("pending", "not_received", "expired")
    assert json.loads(out)["next_step"]


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("errors", "No call matches.\n"),
        ("groups", "No group matches.\n"),
        ("dead-letters", "No dead letters.\n"),
    ],
)
def test_a_list_of_nothing_is_a_sentence_or_json(service, toolfault, command, told):
    code, out, _ = toolfault(command, "--url", service.web, "--json")
    assert code == 0
    assert json.loads(out)["items"] == []

    assert toolfault(command, "--url", service.web) == (0, told, "")


def test_a_dead_letter_that_is_not_there_is_a_sentence(service, toolfault):
    letter = "0123456789abcdef0123456789abcdef"
    for command, told in [
        ("show", f"There is no dead letter {letter} that this token may see.\n"),
        ("ack", f"No dead letter waits under {letter}.\n"),
    ]:
        found = toolfault("dead-letters", command, letter, "--url", service.web)
        assert found == (1, "", f"toolfault: {told}")


def test_a_filter_that_is_not_accepted_is_named(service, toolfault):
    code, _, err = toolfault("errors", "--code", "OOPS", "--url", service.web)

    assert code == 1
    assert err.startswith("toolfault: A filter is not accepted: code. Give 'INVALID_ARGUMENT'")


def test_a_time_that_is_not_accepted_is_told_how_one_looks(toolfault):
    assert toolfault("errors", "--since", "yesterday") == (
        2,
        "",
        "toolfault: 'yesterday' is not a time. Give an age such as 30m, 2h or 7d, "
        "a day such as 2026-11-30 (from 0:00 UTC), or 2026-11-30T14:00:00Z.\n",
    )


def test_the_version_is_that_of_the_package(toolfault):
    assert toolfault("--version") == (0, f"toolfault {version('toolfault')}\n", "")


def test_no_service_is_a_sentence(toolfault):
    code, _, err = toolfault("lookup", "938N-KRKA-S18P", "--url", "http://127.0.0.1:1")

    assert code == 1
    assert err == (
        "toolfault: No service answers at http://127.0.0.1:1. Start one with `toolfault up`, or say "
        "where it is with --url or TOOLFAULT_URL.\n"
    )


def test_a_setting_that_is_not_accepted_ends_with_2(toolfault):
    code, _, err = toolfault("lookup", "938N-KRKA-S18P", TOOLFAULT_WEB_PORT="many")

    assert code == 2
    assert (
        err
        == "toolfault: TOOLFAULT_WEB_PORT: 'many' is not accepted. Give a port, 0 for a free one.\n"
    )


def test_a_wrong_flag_ends_with_2(toolfault):
    assert toolfault("up", "--web-port", "70000")[0] == 2


def test_a_taken_port_is_named_with_its_flag(tmp_path, up):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        code, err = up("--data-dir", tmp_path, "--web-port", port)

    assert code == 1
    assert err.startswith(f"toolfault: Port {port} on 127.0.0.1 is taken.")
    assert "--web-port" in err


def test_a_folder_that_cannot_be_written_is_named_with_its_flag(tmp_path, up):
    (tmp_path / "file").touch()

    code, err = up("--data-dir", tmp_path / "file" / "data")

    assert code == 1
    assert f"The data folder {tmp_path}/file/data cannot be written" in err
    assert "--data-dir" in err


def test_a_database_that_does_not_answer_is_named_without_its_password(up):
    secret = "hunter" + "2"

    code, err = up(TOOLFAULT_DATABASE_URL=f"postgresql://user:{secret}@127.0.0.1:1/calls")

    assert code == 1
    assert "The database 'calls' at 127.0.0.1:1 cannot be reached" in err
    assert "Connection refused" in err
    assert secret not in err


def test_a_schema_that_is_not_current_is_refused_with_the_command_that_helps(
    empty_database_url, toolfault, up
):
    code, err = up(TOOLFAULT_DATABASE_URL=empty_database_url)
    assert code == 1
    assert "toolfault db upgrade" in err

    code, out, _ = toolfault("db", "current", TOOLFAULT_DATABASE_URL=empty_database_url)
    assert (code, out) == (
        0,
        f"The schema is at nothing yet; this version needs {schema.head()}: toolfault db upgrade\n",
    )
    assert toolfault("db", "upgrade")[:2] == (0, f"The schema is at {schema.head()}.\n")
    code, out, _ = toolfault("db", "current", "--json")
    assert json.loads(out) == {"current": schema.head(), "head": schema.head()}


def test_ports_for_other_machines_need_a_token(database_url, up):
    code, err = up("--host", "0.0.0.0", TOOLFAULT_DATABASE_URL=database_url)  # noqa: S104

    assert code == 1
    assert "no token guards the service" in err
    assert "toolfault token create" in err


def test_a_token_is_made_listed_and_revoked(database_url, toolfault):
    variables = {"TOOLFAULT_DATABASE_URL": database_url}

    code, out, _ = toolfault("token", "create", "desk", "--role", "support", "--json", **variables)
    made = json.loads(out)
    assert (code, made["roles"]) == (0, ["support"])
    code, out, _ = toolfault("token", "list", "--json")
    assert [token["name"] for token in json.loads(out)] == ["desk"]
    assert made["secret"] not in out
    assert toolfault("token", "revoke", made["id"])[0] == 0

    code, _, err = toolfault("token", "revoke", made["id"])

    assert code == 1
    assert "There is no valid token" in err


def test_a_role_that_is_none_is_named(toolfault):
    code, _, err = toolfault("token", "create", "desk", "--role", "chief")

    assert code == 2
    assert err == (
        "toolfault: chief is no role. Roles are ingest, scrape, support, engineer, admin.\n"
    )


def test_erasing_and_rebasing_say_what_they_did(database_url, toolfault):
    with psycopg.connect(database_url) as conn:
        assert conn.execute("SELECT count(*) FROM call_total").fetchone() == (0,)

    code, out, _ = toolfault("erase", "--conversation", "c-1", TOOLFAULT_DATABASE_URL=database_url)
    assert (code, out) == (
        0, "Erased: 0 calls, 0 events, 0 logs, 0 references, 0 dead letters.\n"
    )  # fmt: skip
    assert toolfault("db", "rebase")[:2] == (0, "0 totals start at 0 again.\n")


def test_a_file_of_alerts_that_cannot_be_used_is_all_that_is_told(database_url, tmp_path):
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "toolfault.cli", "up"),
            *("--grpc-port", "0", "--http-port", "0", "--web-port", "0"),
        ],
        env=environment(
            TOOLFAULT_DATABASE_URL=database_url,
            TOOLFAULT_ALERTS_FILE=str(tmp_path / "mine.yml"),
        ),
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 2
    assert ended.stderr == (
        f"toolfault: {tmp_path}/mine.yml cannot be read (No such file or directory). "
        "Give an alerts' settings file.\n"
    )


_INTERRUPTED_WHILE_IMPORTED = """
import os, signal, sys

class Interrupts:
    def find_spec(self, name, path, target=None):
        if name == "toolfault.cli.app":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupts())
from toolfault.cli import main
main()
"""


def test_ctrl_c_while_the_command_is_still_loading_is_no_traceback():
    ended = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED_WHILE_IMPORTED],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ended.returncode, ended.stderr) == (130, "")


def test_a_missing_extra_is_named_with_the_pip_line():
    without = "import sys; sys.modules['typer'] = None; from toolfault.cli import main; main()"

    ended = subprocess.run(
        [sys.executable, "-c", without],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 1
    assert ended.stderr == (
        "toolfault: the package typer is not installed. This command needs the server extra: "
        'pip install "toolfault[server]"\n'
    )

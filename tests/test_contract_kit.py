"""The contract kit on projects outside of the packages: what their authors read."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import toolfault
from toolfault import ToolFailure, guard
from toolfault.contract import Reason, assert_stopped_at_budget, changes
from toolfault.testing import capture_tool_errors

PROJECTS = Path(__file__).parent / "kit_project"


def run(project, *options):
    """Exit code and output of pytest in a copy of a project."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "toolfault.pytest_plugin", *options],
        cwd=project, capture_output=True, text=True, check=False,
        env={"PATH": "", "COLUMNS": "200"},
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def kept(tmp_path):
    return Path(shutil.copytree(PROJECTS / "kept", tmp_path / "kept"))


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    project = tmp_path_factory.mktemp("kit") / "broken"
    code, output = run(shutil.copytree(PROJECTS / "broken", project))
    assert code == 1
    return output


def test_a_project_that_keeps_its_contract_passes(kept):
    code, output = run(kept)
    assert (code, "7 passed" in output) == (0, True), output


#: What the author reads when each rule is broken, whole.
MESSAGES = {
    "swallows[orders_down]": "the tool answered [], as if there were nothing: a failure is never "
    "an empty result. Raise ToolFailure, or ToolRefusal where the tool says no",
    "succeeds[orders_down]": "the tool did not fail: the case does not bring the failure about",
    "crashes[orders_down]": "the tool crashed and says 'unmapped_failure', not 'orders_down': map "
    "what it raised with error_map=, or raise ToolFailure",
    "renames[orders_down]": "the tool says reason 'orders_gone', not 'orders_down'",
    "names_exception[orders_down]": "the model reads an exception's name, "
    "'requests.ConnectionError': write the message yourself, for somebody who knows nothing of "
    "the program",
    "names_sql[orders_down]": "the model reads something that had to be scrubbed, "
    "'[REDACTED:sql]': write the message yourself, for somebody who knows nothing of the program",
    "names_host[orders_down]": "the model reads something that had to be scrubbed, "
    "'[REDACTED:host]': write the message yourself, for somebody who knows nothing of the program",
    "names_secret[orders_down]": "the planted secret not-… got out",
    "fine[own_code]": "the tool says reason 'orders_down', not 'own_code'\n"
    "code 'OOPS' is not in the closed set; return what the guard returns, unchanged",
    "fine[orders_down]": "the error has keys of its own, ['hint']: the model knows none of them",
    "plain[orders_down]": "no guarded call of 'plain' was made: put @toolfault.guard('plain') on "
    "it, and have the case call that function",
    "broken_case[orders_down]": "the case itself raised KeyError: 'gone'",
    "declared_reasons_have_cases": "forgotten declares 'never_driven', and no case brings it "
    "about: add Case('forgotten', 'never_driven', lambda: ...)\n"
    "fine does not declare 'own_code': add it to the guard's reasons= with the words for the user\n"
    "there is no guarded tool 'broken_case': is its module imported, its name right?\n"
    "there is no guarded tool 'plain': is its module imported, its name right?",
    "reasons_are_stable": "changed: the reason 'orders_down' meant failed UNAVAILABLE and now "
    "means failed CONFLICT\n"
    "refund_order: the reason 'already_refunded' is gone\n"
    "Whoever relies on these reasons breaks: alerts, dashboards, other programs. Bring them back, "
    "or raise the major version and accept it with pytest --accept-tool-reasons.\n"
    "New reasons, a minor version:",
}


@pytest.mark.parametrize("test", MESSAGES)
def test_a_broken_rule_is_said_with_what_to_do(broken, test):
    _, _, report = broken.partition(f"_ {test} _")
    told = report.partition("\n")[2]
    assert told.startswith(f"The contract of the tools is broken.\n{MESSAGES[test]}\n")


def test_no_broken_rule_shows_a_traceback(broken):
    assert "Traceback" not in broken
    assert "pytest_plugin.py" not in broken
    assert "14 failed, 1 passed" in broken


def test_the_first_run_asks_for_the_snapshot_and_writes_it_where_told(kept):
    (kept / "tool_reasons.json").unlink()
    code, output = run(kept, "-k", "stable")
    assert code == 1
    assert "run pytest --accept-tool-reasons once and commit it" in output
    assert run(kept, "--accept-tool-reasons")[0] == 0
    written = json.loads((kept / "tool_reasons.json").read_text())
    assert written == json.loads((PROJECTS / "kept" / "tool_reasons.json").read_text())


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("tool_contract.py", "", "tool_contract.py has no CASES: write CASES ="),
        ("tool_reasons.json", "{", "tool_reasons.json cannot be read: restore it"),
    ],
)
def test_a_file_that_cannot_be_used_is_said(kept, name, text, told):
    (kept / name).write_text(text)
    code, output = run(kept)
    assert code != 0
    assert told in output
    assert "Traceback" not in output


def test_what_is_breaking_and_what_is_new():
    one, other = Reason("failed", "NOT_FOUND"), Reason("declined", "CONFLICT")
    accepted = {"a": {"x": one, "y": one}, "b": {"z": one}}

    assert changes(accepted, accepted) == ([], [])
    assert changes(accepted, {"a": {"x": other, "w": one}}) == (
        [
            "a: the reason 'x' meant failed NOT_FOUND and now means declined CONFLICT",
            "a: the reason 'y' is gone",
            "b: the reason 'z' is gone",
        ],
        ["a: 'w'"],
    )


# --- agents --------------------------------------------------------------------------------------


@guard("book")
def book():
    raise ToolFailure("book", "down", transient=True)


@guard("look")
def look():
    return []


def test_a_model_that_stops_at_the_budget_is_shown_to():
    with toolfault.run(), capture_tool_errors() as reported:
        answers = [("book", book()), ("book", book()), ("look", look())]

    assert_stopped_at_budget(reported.calls)
    assert_stopped_at_budget(answers)


def test_a_model_that_goes_on_is_found_out():
    with toolfault.run(), capture_tool_errors() as reported:
        answers = [("book", book()), ("book", book()), ("look", look()), ("book", book())]

    for events in (reported.calls, answers):
        with pytest.raises(AssertionError, match="book was called again after the model was told"):
            assert_stopped_at_budget(events)


def test_a_test_in_which_no_budget_was_spent_shows_nothing():
    with toolfault.run(), capture_tool_errors() as reported:
        book()

    with pytest.raises(AssertionError, match="no tool reached its failure budget"):
        assert_stopped_at_budget(reported.calls)

"""Text written by strangers, in every field, with the content policy switched off: still no script."""

import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from urllib.parse import quote, urlencode

import httpx
import pytest
from tests.browser.site import served
from tests.web.conftest import call, declared, event, log_of, ok

from toolfault import conventions as names
from toolfault.store.write import Writer

HOSTILE = (
    "<script>ran('script')</script>\"'><img src=x onerror=\"ran('img')\"></textarea></title>"
    "<svg onload=\"ran('svg')\"><a href=\"javascript:ran('link')\">{{7*7}}{% raw %}${ran('js')}"
    "\u202eevil\u0007\x1b[31m\n=cmd()"
)
_TEXTS = ("service", "environment", "tool", "reason", "run_id", "conversation_id", "agent",
          "version", "exception_type", "frame", "message")  # fmt: skip
_ATTRIBUTES = (names.EVIDENCE, names.USER_MESSAGE, names.FIELD, names.TOOL_CALL_ID,
               names.REQUEST_MODEL)  # fmt: skip
_TRAP = "window.runs = []; window.ran = (what) => { window.runs.push(what); };"


@pytest.fixture(scope="module")
def hostile(new_database):
    """Pages over records that are hostile in every field."""
    url = new_database()
    failed = call(**dict.fromkeys(_TEXTS, HOSTILE), attributes=_attributes())
    foreign = call(reference_id=HOSTILE.partition('="')[0][:64], tool=HOSTILE)
    told = declared(HOSTILE, **{
        names.OWNER: HOSTILE, names.OWNER_CONTACT: HOSTILE,
        names.RUNBOOK: "javascript:ran('runbook')", names.REASONS: json.dumps({HOSTILE: HOSTILE}),
    })._replace(service=HOSTILE, environment=HOSTILE, version=HOSTILE)  # fmt: skip
    logs = [
        log_of(failed, names.EXCEPTION, exception_type=HOSTILE, body=HOSTILE, stacktrace=HOSTILE),
        log_of(failed, names.LOG, body=HOSTILE, attributes={names.LOGGER_NAME: HOSTILE}),
    ]
    letter = event(names.DEAD_LETTER, label=HOSTILE)._replace(service=HOSTILE, environment=HOSTILE)
    writer = Writer.open(url)
    writer.load([failed, foreign, ok(**dict.fromkeys(_TEXTS[:8], HOSTILE))], [told, letter], logs)
    writer.close()
    with served(url) as address:
        _alert(address)
        yield SimpleNamespace(url=address, failed=failed, foreign=foreign)


def _attributes():
    now = int(datetime.now(UTC).timestamp() * 1e9)
    tried = {"number": 1, "start": now, "end": now, "code": HOSTILE, "reason": HOSTILE,
             "effect": HOSTILE}  # fmt: skip
    return {**dict.fromkeys(_ATTRIBUTES, HOSTILE), names.ATTEMPT_LIST: json.dumps([tried])}


def _alert(address):
    alert = {
        "status": "firing",
        "labels": {"alertname": HOSTILE, "service": HOSTILE, "tool": HOSTILE, "severity": HOSTILE},
        "annotations": {"summary": HOSTILE, "runbook_url": "javascript:ran('alert')"},
        "startsAt": (datetime.now(UTC) - timedelta(minutes=8)).isoformat(),
        "endsAt": "0001-01-01T00:00:00Z", "fingerprint": "f1",
    }  # fmt: skip
    body = {"version": "4", "groupKey": "{}", "status": "firing", "receiver": "toolfault",
            "alerts": [alert]}  # fmt: skip
    httpx.post(f"{address}/api/v1/alerts", json=body).raise_for_status()


def test_no_script_runs_on_any_page(opened, hostile):
    page = opened(hostile.url, bypass_csp=True)
    page.context.add_init_script(_TRAP)
    ran = {}

    for path in (
        "/",
        f"/r/{hostile.failed.reference_id}",
        f"/r/{quote(hostile.foreign.reference_id, safe='')}",
        f"/r/{quote(HOSTILE, safe='')}",
        "/errors",
        f"/errors?{urlencode(dict.fromkeys(['tool', 'reason', 'conversation'], HOSTILE[:190]))}",
        "/groups",
        f"/groups/{hostile.failed.fingerprint.hex()}",
        "/tools",
        f"/tools/{quote(HOSTILE, safe='')}",
        "/health",
        f"/{quote(HOSTILE, safe='')}",
    ):
        page.goto(hostile.url + path)
        _touch_everything(page)
        ran[path] = page.evaluate("window.runs")

    assert {path: scripts for path, scripts in ran.items() if scripts != []} == {}


def _touch_everything(page):
    page.evaluate(
        """() => document.querySelectorAll("a, img, svg, input, button[type=button]").forEach((one) => {
            one.dispatchEvent(new MouseEvent("mouseover", {bubbles: true}));
            if (one.protocol === "javascript:" || one.type === "button") one.click();
        })"""
    )


def test_the_trap_itself_would_have_caught_a_script(opened, hostile):
    page = opened(hostile.url, bypass_csp=True)
    page.context.add_init_script(_TRAP)
    page.reload()

    page.evaluate("document.body.innerHTML = '<img src=x onerror=\"ran(1)\">'")
    page.wait_for_function("window.runs.length === 1")

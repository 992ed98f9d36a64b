"""What the tests of all frameworks share; each runs in an environment that has only its own."""

import asyncio
import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from toolfault import budget
from toolfault import conventions as c
from toolfault.telemetry import declared, events, report

for name in [name for name in os.environ if name.startswith(("TOOLFAULT_", "OTEL_"))]:
    del os.environ[name]

PAGE = Path(__file__).parents[2] / "docs" / "hooks.md"
EXAMPLES = Path(__file__).parents[2] / "examples" / "hooks"

#: How the booking scenario of the examples ends, whatever the framework.
BOOKING = """
list_slots          ok                                                  attempts 1
book_meeting        ok                                                  attempts 1
book_meeting        declined    CONFLICT slot_taken                     attempts 1
book_meeting        failed      UNAVAILABLE upstream_unavailable        attempts 1
book_meeting        invalid     INVALID_ARGUMENT invalid_arguments      attempts 0
cancel_meeting      failed      INTERNAL unmapped_failure               attempts 1
reschedule_meeting  not_found   NOT_FOUND unknown_tool                  attempts 0
""".lstrip()

# Frameworks take the global provider when they are imported, so there is one for the process.
_spans, _events = InMemorySpanExporter(), InMemoryLogRecordExporter()
_tracers, _loggers = TracerProvider(), LoggerProvider()
_tracers.add_span_processor(SimpleSpanProcessor(_spans))
_loggers.add_log_record_processor(SimpleLogRecordProcessor(_events))
trace.set_tracer_provider(_tracers)


class Exported:
    """What has left the process since the test began."""

    @property
    def spans(self):
        return _spans.get_finished_spans()

    @property
    def events(self):
        return [data.log_record for data in _events.get_finished_logs()]

    def named(self, name):
        return [event for event in self.events if event.event_name == name]

    def words(self):
        """All that the events say."""
        return str([(event.body, dict(event.attributes)) for event in self.events])

    def records(self):
        """The calls the service would count: by key, from spans and events alike."""
        found = {}
        for span in self.spans:
            if c.OUTCOME in (span.attributes or {}):
                context = span.get_span_context()
                found[context.trace_id, context.span_id] = span.attributes
        for event in self.events:
            if event.event_name in c.RECORD_EVENTS:
                found.setdefault((event.trace_id, event.span_id), event.attributes)
        return list(found.values())

    def told(self):
        """Of each call: outcome, code, reason, attempts, effect."""
        keys = (c.OUTCOME, c.CODE, c.REASON, c.ATTEMPTS, c.EFFECT)
        return [tuple(record.get(key) for key in keys) for record in self.records()]

    def model_calls(self):
        """Of each model call: model, attempts, result."""
        keys = (c.REQUEST_MODEL, c.COUNT, c.RESULT)
        return [tuple(e.attributes.get(key) for key in keys) for e in self.named(c.MODEL_CALL)]

    def model_errors(self):
        """Of each failed model call: code, class of the exception."""
        told = [event.attributes for event in self.named(c.MODEL_ERROR)]
        return [(e[c.CODE], e[c.EXCEPTION_TYPE].rpartition(".")[2]) for e in told]

    def limits_reached(self):
        """Of each run that reached its limit: its id, the limit."""
        told = [event.attributes for event in self.named(c.RUN_LIMIT_EXCEEDED)]
        return [(e[c.RUN_ID], e[c.LIMIT]) for e in told]

    def tool_spans(self):
        """All spans of tools, ours and theirs."""
        return [s for s in self.spans if s.name.startswith(("execute_tool", "tools/call"))]


@pytest.fixture
def exported():
    faults = report.faults()
    _spans.clear()
    _events.clear()
    events.use_provider(_loggers)
    yield Exported()
    events.use_provider(None)
    budget._in_process.clear()
    declared._announcer.__init__()
    assert report.faults() == faults, "the hook has failed and hidden it"


@pytest.fixture
def assert_books_as_everywhere():
    """Runs an example and compares the calls it ends with."""

    def check(example):
        ran = subprocess.run(
            [sys.executable, EXAMPLES / example],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout == BOOKING

    return check


@pytest.fixture
def assert_lines_of_the_page_run():
    """Runs the code of a framework's section of the page about hooks."""

    def check(heading):
        section = PAGE.read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
        examples = re.findall(r"^```py\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
        assert examples
        for example in examples:
            exec(compile(example, str(PAGE), "exec"), {})  # noqa: S102 - our own page

    return check


@pytest.fixture
def endless():
    """A tool that never ends; `.started` is set once it runs."""
    started = asyncio.Event()

    async def endless(x: int) -> str:
        """Never ends."""
        started.set()
        await asyncio.sleep(60)
        return ""

    endless.started = started
    return endless


@pytest.fixture
def cancelled_while_running():
    """Cancels what runs a tool as soon as the tool runs."""

    async def cancel(running, tool):
        task = asyncio.ensure_future(running)
        await tool.started.wait()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    return cancel

"""OpenInference and OpenLLMetry beside the hook: one call is counted once, on their span."""

from contextlib import suppress

import pytest
from agents import Runner, set_trace_processors
from agents.exceptions import AgentsException
from openinference.instrumentation.openai_agents import (
    OpenAIAgentsInstrumentor as OpenInferenceInstrumentor,
)
from opentelemetry.instrumentation.openai_agents import OpenAIAgentsInstrumentor
from tests.hooks.openai_agents.stub import make_agent

import toolfault
from toolfault import conventions as c
from toolfault.hooks.openai_agents import SPANS, ToolfaultHooks

THEIRS = {
    "openinference": (OpenInferenceInstrumentor, "openinference.span.kind", "TOOL"),
    "openllmetry": (OpenAIAgentsInstrumentor, "traceloop.span.kind", "tool"),
}


@pytest.fixture(params=["before", "after"])
def theirs(request, which):
    """Their instrumentation, on before or after ours; gives how their spans are known."""
    instrumentor, key, kind = THEIRS[which]
    ours_first = request.param == "after"
    set_trace_processors([SPANS] if ours_first else [])
    instrumentor().instrument(exclusive_processor=False)
    SPANS._added = ours_first
    yield lambda spans: [span for span in spans if (span.attributes or {}).get(key) == kind]
    instrumentor().uninstrument()
    SPANS._added = False
    set_trace_processors([])


@pytest.fixture(params=THEIRS)
def which(request):
    return request.param


@pytest.fixture(params=["hooks", "process"])
def run(request):
    """Runs an agent that is hooked in one of two ways."""

    async def hooked(*calls):
        options = {}
        if request.param == "hooks":
            hooks = ToolfaultHooks()
            options = {"hooks": hooks, "run_config": hooks.run_config()}
        with suppress(AgentsException):
            await Runner.run(make_agent(*calls), "hi", **options)

    if request.param == "process":
        toolfault.instrument()
    yield hooked
    toolfault.uninstrument()


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        ("ok", ("ok", None, None, 1, "applied")),
        ("boom", ("failed", "INTERNAL", "unmapped_failure", 1, "unknown")),
        ("book", ("ok", None, None, 1, "applied")),
        ("slow", ("timed_out", "UNAVAILABLE", "timed_out", 1, "unknown")),
    ],
)
async def test_a_call_is_counted_once_and_their_span_carries_it(
    exported, theirs, run, tool, expected
):
    await run((tool, {"x": 1}))
    assert exported.told() == [expected]
    [span] = theirs(exported.spans)
    assert span.attributes[c.OUTCOME] == expected[0]
    assert [s for s in exported.spans if s.instrumentation_scope.name == "toolfault"] == []


async def test_a_call_that_ends_the_run_names_their_span(exported, theirs, run):
    await run(("boom_raises", {"x": 1}))
    assert exported.told() == [("failed", "INTERNAL", "unmapped_failure", 1, "unknown")]
    [span], [event] = theirs(exported.spans), exported.named(c.TOOL_ERROR)
    assert event.span_id == span.context.span_id
    assert [s for s in exported.spans if s.instrumentation_scope.name == "toolfault"] == []

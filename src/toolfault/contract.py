"""What a tool promises its model, checked by driving it into every failure it declares.

A project writes `tool_contract.py` among its tests, and pytest finds it:

from toolfault.contract import Case
from shop import tools

CASES = [
    Case("get_order", "order_unknown", lambda: tools.get_order("A-0")),
    Case("get_order", "orders_down", lambda: with_orders_down(tools.get_order, "A-1042")),
]
SECRETS = ["..."]  # planted in the fakes: must appear nowhere

Here is what is checked; `pytest_plugin` finds the file and says how to go on.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from toolfault import testing
from toolfault.errors import ToolError
from toolfault.taxonomy import QUIET_OUTCOMES, Action
from toolfault.telemetry import declared
from toolfault.telemetry.record import ToolCall

_KEYS = frozenset(
    {"code", "reason", "field", "message", "action", "retryable", "retry_after", "ref"}
)
#: What gives away the inside of a program: what it is, how to find it.
_FORBIDDEN: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("an exception's name", re.compile(r"\b(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)\b")),
    ("a stack trace", re.compile(r"Traceback|File \"[^\"]+\", line \d|\bat (?:com|org|java)\.")),
    (
        "SQL",
        re.compile(
            r"\b(?:SELECT\b.+\bFROM|INSERT\s+INTO|UPDATE\b.+\bSET|DELETE\s+FROM)\b", re.IGNORECASE
        ),
    ),
    ("a connection string", re.compile(r"\b(?:jdbc:|postgres(?:ql)?://|mysql://|redis://)")),
    (
        "a host",
        re.compile(
            r"\b[\w-]+(?:\.[\w-]+)*\.(?:internal|local|lan|corp|svc)\b"
            r"|\b\d{1,3}(?:\.\d{1,3}){3}\b|\blocalhost\b"
        ),
    ),
    ("something that had to be scrubbed", re.compile(r"\[REDACTED:\w+\]|\[unscrubbable\]")),
)


class Case(NamedTuple):
    """One declared failure of a tool and how to bring it about.

    `provoke` calls the guarded tool so that it fails with `reason`; it returns what the model would
    read. It may be async, and may return a stream.
    """

    tool: str
    reason: str
    provoke: Callable[[], Any]


class Reason(NamedTuple):
    """What a reason means, as far as a program can tell; a change of it is a new meaning."""

    outcome: str
    code: str


class Driven(NamedTuple):
    """What became of a case."""

    case: Case
    returned: Any
    raised: Exception | None
    calls: tuple[ToolCall, ...]

    @property
    def meaning(self) -> Reason | None:
        """The outcome and code that the tool reported with the declared reason."""
        found = [call for call in self.calls if call.reason == self.case.reason]
        return Reason(found[0].outcome.value, found[0].code or "") if found else None


def drive(case: Case) -> Driven:
    """Bring the failure about."""
    returned, raised = None, None
    with testing.capture_tool_errors() as reported:
        try:
            returned = _settled(case.provoke())
        except Exception as error:  # noqa: BLE001 - whatever it raises is judged
            raised = error
    calls = tuple(call for call in reported.calls if call.tool == case.tool)
    return Driven(case, returned, raised, calls)


def _settled(result: Any) -> Any:
    """What the model would read: awaited, and of a stream the last item."""
    if inspect.isawaitable(result):
        return asyncio.run(_awaited(result))
    if isinstance(result, AsyncIterator):
        return asyncio.run(_last(result))
    if isinstance(result, Iterator):
        return (list(result) or [None])[-1]
    return result


async def _awaited(result: Any) -> Any:
    result = await result
    return await _last(result) if isinstance(result, AsyncIterator) else result


async def _last(items: AsyncIterator[Any]) -> Any:
    last = None
    async for item in items:
        last = item
    return last


def problems(driven: Driven, secrets: Sequence[str] = ()) -> list[str]:
    """What is wrong with what became of a case, each said with what to do."""
    case = driven.case
    if driven.raised is not None and not isinstance(driven.raised, ToolError):
        return [f"the case itself raised {type(driven.raised).__name__}: {driven.raised}"]
    if not driven.calls:
        fix = f"put @toolfault.guard({case.tool!r}) on it, and have the case call that function"
        return [f"no guarded call of {case.tool!r} was made: {fix}"]
    call = driven.calls[-1]
    if call.outcome in QUIET_OUTCOMES:
        return [_no_failure(driven.returned)]
    found = [] if call.reason == case.reason else [_other_reason(case.reason, call.reason)]
    answer = driven.raised.answer if isinstance(driven.raised, ToolError) else driven.returned
    return [*found, *_of_answer(answer), *_leaks(answer, call, secrets)]


def _no_failure(returned: Any) -> str:
    output = returned.get("output") if isinstance(returned, dict) else returned
    if output in (None, "", [], {}, ()):
        return (
            f"the tool answered {output!r}, as if there were nothing: a failure is never an empty "
            "result. Raise ToolFailure, or ToolRefusal where the tool says no"
        )
    return "the tool did not fail: the case does not bring the failure about"


def _other_reason(expected: str, told: str | None) -> str:
    if told == "unmapped_failure":
        return (
            f"the tool crashed and says {told!r}, not {expected!r}: map what it raised with "
            "error_map=, or raise ToolFailure"
        )
    return f"the tool says reason {told!r}, not {expected!r}"


def _of_answer(answer: Any) -> Iterator[str]:
    try:
        testing.assert_envelope(answer)
    except AssertionError as wrong:
        yield f"{wrong}; return what the guard returns, unchanged"
        return
    unknown = set(answer.get("error", {})) - _KEYS
    if unknown:
        yield f"the error has keys of its own, {sorted(unknown)}: the model knows none of them"


def _leaks(answer: Any, call: ToolCall, secrets: Sequence[str]) -> Iterator[str]:
    text = "\n".join(_texts(answer))
    for what, pattern in _FORBIDDEN:
        if match := pattern.search(text):
            yield (
                f"the model reads {what}, {match.group()[:60]!r}: write the message yourself, "
                "for somebody who knows nothing of the program"
            )
    everywhere = [text, call.message or "", call.user_message or "", call.evidence or ""]
    for secret in secrets:
        if any(secret in place for place in everywhere):
            yield f"the planted secret {secret[:4]}… got out"


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, str):
        yield value


def missing(cases: Iterable[Case]) -> list[str]:
    """Declared reasons that no case brings about, and cases whose reason nobody declares."""
    driven = {(case.tool, case.reason) for case in cases}
    promised = {(tool.name, reason) for tool in declared.tools() for reason in tool.reasons}
    names = {tool.name for tool in declared.tools()}
    return [
        *(
            f"{tool} declares {reason!r}, and no case brings it about: add "
            f"Case({tool!r}, {reason!r}, lambda: ...)"
            for tool, reason in sorted(promised - driven)
        ),
        *(
            f"{tool} does not declare {reason!r}: add it to the guard's reasons= with the words "
            "for the user"
            for tool, reason in sorted(driven - promised)
            if tool in names
        ),
        *(
            f"there is no guarded tool {tool!r}: is its module imported, its name right?"
            for tool in sorted({tool for tool, _ in driven} - names)
        ),
    ]


Reasons = dict[str, dict[str, Reason]]


def reasons_of(results: Iterable[Driven]) -> Reasons:
    """The reasons that were brought about, by tool, with what they mean."""
    found: Reasons = {}
    for driven in results:
        if (meaning := driven.meaning) is not None:
            found.setdefault(driven.case.tool, {})[driven.case.reason] = meaning
    return {tool: dict(sorted(found[tool].items())) for tool in sorted(found)}


def changes(accepted: Reasons, now: Reasons) -> tuple[list[str], list[str]]:
    """What breaks whoever relies on the accepted reasons, and what is merely new."""
    breaking, new = [], []
    for tool, reasons in accepted.items():
        for reason, meant in reasons.items():
            means = now.get(tool, {}).get(reason)
            if means is None:
                breaking.append(f"{tool}: the reason {reason!r} is gone")
            elif means != meant:
                breaking.append(
                    f"{tool}: the reason {reason!r} meant {meant.outcome} {meant.code} and now "
                    f"means {means.outcome} {means.code}"
                )
    for tool, reasons in now.items():
        new += [f"{tool}: {reason!r}" for reason in reasons if reason not in accepted.get(tool, {})]
    return breaking, new


def assert_stopped_at_budget(events: Iterable[ToolCall | tuple[str, Any]]) -> None:
    """Check that a model stopped calling a tool once it was told to.

    Args:
        events: the calls of one conversation in their order: those of `capture_tool_errors()`, or
            pairs of a tool's name and the answer the model read.

    Raises:
        AssertionError: a tool was called again, or none ever reached its budget.
    """
    told: list[str] = []
    for event in events:
        tool = event.tool if isinstance(event, ToolCall) else event[0]
        if tool in told:
            raise AssertionError(
                f"{tool} was called again after the model was told to stop: put "
                "toolfault.instructions() into the agent's instruction"
            )
        if _spent(event):
            told.append(tool)
    if not told:
        raise AssertionError(
            "no tool reached its failure budget, so nothing is shown: have the fake tool fail "
            "every time"
        )


def _spent(event: ToolCall | tuple[str, Any]) -> bool:
    """Whether the answer says that the tool is to be called no more in this conversation."""
    if isinstance(event, ToolCall):
        failures, limit = event.budget_failures, event.budget_limit
        return failures is not None and limit is not None and failures >= limit
    answer = event[1]
    error = answer.get("error") if isinstance(answer, dict) else None
    return isinstance(error, dict) and (
        error.get("action") == Action.STOP_AND_TELL_USER
        and "stop calling it in this conversation" in str(error.get("message"))
    )

"""Pydantic AI: a capability.

from toolfault.hooks.pydantic_ai import ToolfaultCapability

agent = Agent("...", capabilities=[ToolfaultCapability()])
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from opentelemetry.trace import NoOpTracer
from pydantic_ai import Agent, RunContext
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering, Instrumentation
from pydantic_ai.exceptions import (
    ApprovalRequired,
    CallDeferred,
    ModelAPIError,
    ModelRetry,
    SkipModelRequest,
    SkipToolExecution,
    UnexpectedModelBehavior,
    UsageLimitExceeded,
    UserError,
)
from pydantic_ai.messages import ModelRequest, ToolCallPart, ToolReturnPart
from pydantic_ai.tools import ToolDefinition

from toolfault import taxonomy
from toolfault.error_map import ToolErrorMap
from toolfault.errors import (
    ToolArgumentValidationError,
    ToolError,
    ToolFailure,
    ToolNotFoundError,
    ToolNotPermittedError,
    ToolTimedOutError,
)
from toolfault.hooks.base import Observer, keep, never_raises
from toolfault.hooks.models import ModelCalls
from toolfault.hooks.patch import with_argument
from toolfault.hooks.told import annotated, field_of
from toolfault.run import Run
from toolfault.taxonomy import Code
from toolfault.telemetry.declared import Tool

#: What `Tool(timeout=...)` tells the model; the exception is that of a retry.
TIMED_OUT = "Timed out after "
#: What a run is ended with when a tool asked for one retry too many.
TOO_MANY_RETRIES = "exceeded max retries count of"
_CONTROL_FLOW = (CallDeferred, ApprovalRequired, SkipToolExecution)
_NOT_ASKED = (SkipModelRequest, UsageLimitExceeded, UserError)
#: What ends a stream that has begun; it shows only where the run ends.
_MODEL_BROKE = (ModelAPIError, UnexpectedModelBehavior)


def _model_retry(tool: str, error: BaseException) -> ToolError:
    told = str(error)
    if told.startswith(TIMED_OUT):
        return ToolTimedOutError(tool)
    return ToolFailure(tool, "model_retry", code=Code.INVALID_ARGUMENT, message=told or None)


def _tool_failed(tool: str, error: BaseException) -> ToolError:
    return ToolFailure(
        tool, taxonomy.RETURNED_ERROR, code=Code.INTERNAL, message=str(error) or None
    )


RULES = ToolErrorMap(
    {ModelRetry: _model_retry, "pydantic_ai.exceptions.ToolFailed": _tool_failed}
)  # fmt: skip


class ToolfaultCapability(AbstractCapability[Any]):
    """Sees every tool call of an agent.

    Args:
        **options: those of `toolfault.hooks.base.Observer`.
    """

    def __init__(self, **options: Any) -> None:
        self._observer = Observer(RULES, **options)
        self._models = ModelCalls()
        self._seen: OrderedDict[tuple[str | None, str], bool] = OrderedDict()

    def get_ordering(self) -> CapabilityOrdering:
        """Inside the framework's instrumentation, whose span carries the record."""
        return CapabilityOrdering(wrapped_by=[Instrumentation])

    async def prepare_tools(
        self, ctx: RunContext[Any], tool_defs: list[ToolDefinition]
    ) -> list[ToolDefinition]:
        """Announce the tools the model is offered."""
        self._observer.declare(_declared(tool) for tool in tool_defs)
        return tool_defs

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: Any,
        handler: Any,
    ) -> Any:
        """The call itself; deferrals and approvals are not its end."""
        opened = self._observer.open(call.tool_name, call_id=call.tool_call_id, run=self._run(ctx))
        try:
            result = await self._observer.attempt(opened, lambda: handler(args), _CONTROL_FLOW)
        except _CONTROL_FLOW:
            self._observer.dropped(opened)
            raise
        except BaseException as error:
            answer = self._observer.failed(opened, error)
            if answer is None or not isinstance(error, Exception):
                raise
            return answer
        answer = self._observer.ok(opened, result)
        return result if answer is None else answer

    async def wrap_tool_validate(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: Any,
        handler: Any,
    ) -> Any:
        """Arguments that do not match; the model reads the framework's own words of them."""
        try:
            return await handler(args)
        except _CONTROL_FLOW:
            raise
        except Exception as error:
            self._invalid(ctx, call, error)
            raise

    async def wrap_model_request(
        self, ctx: RunContext[Any], *, request_context: Any, handler: Any
    ) -> Any:
        """The call of the model, with the attempts that the framework makes of it."""
        key = (ctx.run_id,)
        self._models.asks(key, request_context.model.model_name, self._run(ctx))
        try:
            response = await handler(request_context)
        except asyncio.CancelledError:
            raise  # also how a stream that breaks ends here; see `on_run_error`
        except BaseException as error:
            self._raised(key, error)
            raise
        self._models.repeated(key, len(response.failed_attempts or ()))
        self._models.answered(key)
        return response

    async def before_model_request(self, ctx: RunContext[Any], request_context: Any) -> Any:
        """Unknown tools and denials show only in what the model reads next."""
        self._read(ctx, request_context.messages)
        return request_context

    async def on_run_error(self, ctx: RunContext[Any], *, error: BaseException) -> Any:
        """Report a run that ended at one of its limits, or by a stream of the model that broke."""
        self._ended(ctx, error)
        key = (ctx.run_id,)
        self._models.emitted(key)
        if isinstance(error, _MODEL_BROKE):
            self._models.failed(key, error)
        self._models.over(key)
        raise error

    @never_raises
    def _raised(self, key: tuple[str | None], error: BaseException) -> None:
        if isinstance(error, _NOT_ASKED):
            self._models.dropped(key)
        elif isinstance(error, ModelRetry):
            self._models.answered(key)  # and somebody did not like the answer
        else:
            self._models.repeated(key, max(len(getattr(error, "attempts", ())) - 1, 0))
            self._models.failed(key, error)
            self._models.over(key)

    @never_raises
    def _ended(self, ctx: RunContext[Any], error: BaseException) -> None:
        limit = isinstance(error, UsageLimitExceeded) or (
            isinstance(error, UnexpectedModelBehavior) and TOO_MANY_RETRIES in str(error)
        )
        if limit:
            self._observer.run_limit(_agent(ctx))

    @never_raises
    def _read(self, ctx: RunContext[Any], messages: Sequence[Any]) -> None:
        last = messages[-1] if messages else None
        for part in last.parts if isinstance(last, ModelRequest) else ():
            if isinstance(part, ToolReturnPart) and (told := _turned_away(part)) is not None:
                key = ctx.conversation_id, part.tool_call_id
                if key not in self._seen:
                    keep(self._seen, key, True)
                    self._turned_away(ctx, part, told)

    @never_raises
    def _invalid(self, ctx: RunContext[Any], call: ToolCallPart, error: Exception) -> None:
        told = ToolArgumentValidationError(call.tool_name, field=field_of(error))
        self._turned_away(ctx, call, told)

    @never_raises
    def _turned_away(
        self, ctx: RunContext[Any], call: ToolCallPart | ToolReturnPart, error: ToolError
    ) -> None:
        # The framework opens a span for rejected arguments later, out of reach: no second one.
        theirs = error.outcome is taxonomy.Outcome.INVALID and not isinstance(
            ctx.tracer, NoOpTracer
        )
        opened = self._observer.open(
            call.tool_name,
            call_id=call.tool_call_id,
            run=self._run(ctx),
            span="never" if theirs else None,
        )
        self._observer.turned_away(opened, error)

    @never_raises
    def _run(self, ctx: RunContext[Any]) -> Run | None:
        return self._observer.run(ctx.run_id, ctx.conversation_id, _agent(ctx))


def instrument(**options: Any) -> None:
    """Give every `Agent` of this process the capability."""

    def add(given: Sequence[Any] | None) -> list[Any]:
        kept = list(given or ())
        if any(isinstance(one, ToolfaultCapability) for one in kept):
            return kept
        return [*kept, ToolfaultCapability(**options)]

    with_argument(Agent, "capabilities", add)


def _turned_away(part: ToolReturnPart) -> ToolError | None:
    if part.outcome == "denied":
        return ToolNotPermittedError(part.tool_name, "rejected")
    if part.outcome == "retried" and part.retry is not None and part.retry.cause == "unknown_tool":
        return ToolNotFoundError(part.tool_name)
    return None


def _agent(ctx: RunContext[Any]) -> str | None:
    return getattr(ctx.agent, "name", None)


def _declared(tool: ToolDefinition) -> Tool:
    told = tool.metadata or {}  # of a server's tool it has annotations, though they may be None
    return annotated(tool.name, told.get("annotations"), remote="annotations" in told)

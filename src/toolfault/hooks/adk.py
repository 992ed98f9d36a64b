"""Google's Agent Development Kit: a plugin, and a guard for tools one does not own.

from toolfault.hooks.adk import ToolfaultPlugin

app = App(name="desk", root_agent=agent, plugins=[ToolfaultPlugin()])
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, TypeVar

from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.invocation_context import InvocationContext, LlmCallsLimitExceededError
from google.adk.models import LlmRequest, LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext

from toolfault.errors import (
    ToolArgumentValidationError,
    ToolNotFoundError,
    ToolNotPermittedError,
)
from toolfault.guard import guard
from toolfault.hooks.base import Observer, never_raises
from toolfault.hooks.models import ModelCalls
from toolfault.hooks.patch import after_init
from toolfault.hooks.told import annotated
from toolfault.joined import JoinedCall
from toolfault.telemetry.declared import Tool

T = TypeVar("T", bound=BaseTool)

#: How ADK begins to tell the model that arguments are missing; it raises nothing.
MISSING_ARGUMENTS = "failed as the following mandatory input parameters are not present"
_UNKNOWN = "Tool not found"  # description of the placeholder it makes for an unknown name


class ToolfaultPlugin(BasePlugin):
    """Put it first among the plugins: the first that answers keeps the others from seeing a call.

    Args:
        name: of the plugin.
        **options: those of `toolfault.hooks.base.Observer`.
    """

    def __init__(self, name: str = "toolfault", **options: Any) -> None:
        super().__init__(name=name)
        self._observer = Observer(**options)
        self._models = ModelCalls()

    async def before_model_callback(
        self,
        *,
        callback_context: CallbackContext,
        llm_request: LlmRequest,
    ) -> LlmResponse | None:
        """Announce the tools the model is offered; it is asked next."""
        self._observer.declare(_declared(tool) for tool in llm_request.tools_dict.values())
        run = self._observer.run(
            callback_context.invocation_id,
            callback_context.session.id,
            callback_context.agent_name,
        )
        self._models.asks(_model_key(callback_context), llm_request.model, run)
        return None

    async def after_model_callback(
        self, *, callback_context: CallbackContext, llm_response: LlmResponse
    ) -> LlmResponse | None:
        """The model has answered, or a part of its answer has come."""
        key = _model_key(callback_context)
        if llm_response.partial:
            self._models.emitted(key)
        else:
            self._models.answered(key)
        return None

    async def on_model_error_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest, error: Exception
    ) -> LlmResponse | None:
        """The model has failed; ADK does not ask again."""
        key = _model_key(callback_context)
        self._models.failed(key, error)
        self._models.over(key)
        return None

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        """Open the call."""
        self._open(tool, tool_context)
        return None

    async def after_tool_callback(
        self,
        *,
        tool: BaseTool,
        tool_args: dict[str, Any],
        tool_context: ToolContext,
        result: Any,
    ) -> dict[str, Any] | None:
        """Close the call; ADK tells several things as results that are none."""
        return self._returned(tool, tool_context, result)

    async def on_tool_error_callback(
        self,
        *,
        tool: BaseTool,
        tool_args: dict[str, Any],
        tool_context: ToolContext,
        error: BaseException,
    ) -> dict[str, Any] | None:
        """Close the call; an acting plugin runs the tool again by our policy."""
        call = self._observer.opened(_key(tool_context))
        if type(tool) is BaseTool and tool.description == _UNKNOWN:
            return self._observer.turned_away(call, ToolNotFoundError(tool.name))
        if not self._observer.act or not isinstance(error, Exception):
            return self._observer.failed(call, error)
        return await self._repeated(call, error, tool, tool_args, tool_context)

    async def on_run_error_callback(
        self, *, invocation_context: InvocationContext, error: Exception
    ) -> None:
        """Report a run that ended at its limit of model calls."""
        self._give_up(invocation_context)
        if isinstance(error, LlmCallsLimitExceededError):
            self._observer.run_limit(getattr(invocation_context.agent, "name", None))

    async def after_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """Close what another plugin's fault has kept from being closed."""
        self._give_up(invocation_context)

    def _give_up(self, invocation_context: InvocationContext) -> None:
        self._observer.give_up(invocation_context.invocation_id)
        for key in self._models.keys(invocation_context.invocation_id):
            self._models.dropped(
                key
            )  # somebody else has answered, or a limit kept it from being asked

    @never_raises
    def _open(self, tool: BaseTool, tool_context: ToolContext) -> None:
        run = self._observer.run(
            tool_context.invocation_id,
            tool_context.session.id,
            tool_context.agent_name,
            tool_context.state,
        )
        call_id = tool_context.function_call_id
        self._observer.open(tool.name, call_id=call_id, key=_key(tool_context), run=run)

    @never_raises
    def _returned(
        self, tool: BaseTool, tool_context: ToolContext, result: Any
    ) -> dict[str, Any] | None:
        call = self._observer.opened(_key(tool_context))
        if _waits(tool_context):
            self._observer.dropped(call)
            return None
        told = result.get("error") if isinstance(result, dict) else None
        if told and tool_context.tool_confirmation and not tool_context.tool_confirmation.confirmed:
            return self._observer.turned_away(call, ToolNotPermittedError(tool.name, "rejected"))
        if isinstance(told, str) and MISSING_ARGUMENTS in told:
            return self._observer.turned_away(call, ToolArgumentValidationError(tool.name))
        return self._observer.ok(call, result)

    async def _repeated(
        self,
        call: JoinedCall | None,
        error: Exception,
        tool: BaseTool,
        tool_args: dict[str, Any],
        tool_context: ToolContext,
    ) -> dict[str, Any] | None:
        first: list[Exception] = [error]

        async def body() -> Any:
            if first:
                raise first.pop()
            return await tool.run_async(args=tool_args, tool_context=tool_context)

        try:
            result = await self._observer.attempt(call, body)
        except BaseException as last:
            answer = self._observer.failed(call, last)
            if not isinstance(last, Exception):
                raise
            return answer
        return self._observer.ok(call, result)


def guarded(tool: T, **options: Any) -> T:
    """A tool one does not own, guarded: a copy that keeps declaration, long-running flag and
    request processing, and runs inside of `guard`.

    Args:
        tool: any ADK tool.
        **options: those of `toolfault.guard`.
    """
    twin = copy.copy(tool)
    run: Callable[..., Any] = tool.run_async

    @guard(tool.name, **options)
    async def run_async(*, args: dict[str, Any], tool_context: ToolContext) -> Any:
        return await run(args=args, tool_context=tool_context)

    twin.run_async = run_async  # type: ignore[method-assign]
    return twin


def instrument(**options: Any) -> None:
    """Give every `Runner` of this process the plugin."""

    def add(runner: Runner) -> None:
        plugins = runner.plugin_manager.plugins
        if not any(isinstance(plugin, ToolfaultPlugin) for plugin in plugins):
            plugins.insert(0, ToolfaultPlugin(**options))

    after_init(Runner, add)


def _key(tool_context: ToolContext) -> tuple[str, str | None]:
    return tool_context.invocation_id, tool_context.function_call_id


def _model_key(context: CallbackContext) -> tuple[str, str]:
    return context.invocation_id, context.agent_name


def _waits(tool_context: ToolContext) -> bool:
    actions = tool_context.actions
    return bool(actions.requested_tool_confirmations or actions.requested_auth_configs)


def _declared(tool: BaseTool) -> Tool:
    theirs = getattr(tool, "raw_mcp_tool", None)
    annotations = getattr(theirs, "annotations", None)
    return annotated(tool.name, annotations, remote=theirs is not None)

"""What a guarded function does around its body, whichever kind of function it is."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from toolfault import envelope, joined
from toolfault.call import Call, Decide
from toolfault.error_map import ToolErrorMap
from toolfault.errors import ToolArgumentValidationError, ToolError, ToolResultError, taken_over
from toolfault.run import ToolFailurePolicy
from toolfault.taxonomy import Outcome
from toolfault.telemetry.current import current_call
from toolfault.telemetry.declared import Tool

OnError = Literal["envelope", "raise"]


class Asked(NamedTuple):
    """A function and what it was called with."""

    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """What a guarded function does around its body."""

    tool: Tool
    on_error: OnError
    error_map: ToolErrorMap
    max_attempts: int
    budget_limit: int
    timeout: float | None
    check: Callable[[Any], object] | None
    decide: Decide | None = None

    def call(self) -> Call:
        """A call that has not started, or the one that a framework's hook offers."""
        # By position: names would make it take twice as long.
        options = self.tool, self.error_map, self.max_attempts, self.budget_limit
        call: Call
        if current_call() is not None and (open_one := joined.offered(self.tool.name)) is not None:
            open_one.lend(*options)
            call = open_one
        else:
            call = Call(*options)
        call.decide = self.decide
        return call

    def checked(self, result: Any) -> Any:
        """The result, if it may enter the run; else a `ToolResultError` is raised."""
        if self.check is not None:
            try:
                self.check(result)
            except ToolError:
                raise
            except Exception as error:
                raise ToolResultError(self.tool.name) from error
        return result

    def success(self, call: Call, result: Any) -> Any:
        """What the caller gets of a success."""
        return envelope.success(result) if self._answers(call) else result

    def failure(self, call: Call) -> Any:
        """What the caller gets: the envelope, or the typed error raised. A refusal is data."""
        declined = call.error is not None and call.error.outcome is Outcome.DECLINED
        is_data = declined or self._answers(call)
        # Its traceback holds the frame of the loop, which holds the call: the locals of the tool's
        # frames, such as a connection, would live until the garbage collector comes.
        error, call.error = call.error, None
        if error is None or is_data:
            return call.answer
        # Without its cause and notes: frameworks copy a traceback's text to spans and to the model.
        vars(error).pop("__notes__", None)
        try:
            raise error from None
        finally:
            del error

    def failed(self, call: Call, error: BaseException, asked: Asked) -> float | None:
        """What `Call.failed` says; arguments that the function does not take ran nothing."""
        if type(error) is TypeError and (rejected := _rejected(self.tool.name, asked)):
            call.never_ran(rejected)
            return None
        raised: Any = error
        if issubclass(type(error), ToolError):  # unlike isinstance, it asks nothing of the error
            raised = taken_over(raised)
        return call.failed(raised)

    def _answers(self, call: Call) -> bool:
        """Whether the caller gets envelopes; the run's policy wins over `on_error`."""
        if call.run is not None and call.run.policy is not None:
            return call.run.policy is ToolFailurePolicy.CONTINUE
        return self.on_error == "envelope" and not call.escalates


_NAME = re.compile(r"'([^']+)'")


def _rejected(tool: str, asked: Asked) -> ToolArgumentValidationError | None:
    """What is wrong with the arguments; None where the function takes them, so its body raised."""
    try:
        inspect.signature(asked.function).bind(*asked.args, **asked.kwargs)
    except ValueError:  # a function of C that does not say what it takes
        return None
    except TypeError as mismatch:
        named = _NAME.search(str(mismatch))
        field = named[1] if named else None
        problem = "is missing" if "missing" in str(mismatch) else "is not one of this tool"
        message = f"Argument {field} {problem}." if field else "There are too many arguments."
        return ToolArgumentValidationError(tool, field=field, message=message)
    return None

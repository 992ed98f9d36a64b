"""The hook for one function: `@guard("book_meeting")`.

Inside, exceptions become typed errors, typed errors become what the model reads, and every call
is reported once.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from toolfault import budget
from toolfault.around import Hook, OnError
from toolfault.call import Decide
from toolfault.conventions import MAX_NAME
from toolfault.error_map import ToolErrorMap
from toolfault.errors import is_reason
from toolfault.handlers import Handler, deciding
from toolfault.idempotency import keyed
from toolfault.telemetry import declared
from toolfault.telemetry.declared import Tool
from toolfault.transport import TRANSPORT
from toolfault.wrap import F, wrapped


def guard(
    name: str,
    *,
    on_error: OnError | Handler | Sequence[Handler] = "envelope",
    writes: bool = True,
    idempotent: bool = False,
    owner: str | None = None,
    owner_contact: str | None = None,
    runbook: str | None = None,
    reasons: Mapping[str, str] | None = None,
    error_map: ToolErrorMap | None = None,
    max_attempts: int = 1,
    budget_limit: int = budget.DEFAULT_LIMIT,
    timeout: float | None = None,
    check: Callable[[Any], object] | None = None,
) -> Callable[[F], F]:
    """Guard a tool function; sync, async, generators of both kinds and methods.

    A function with a parameter `idempotency_key` is given one, the same in every attempt.

    Args:
        name: of the tool, as the model calls it.
        on_error: "envelope" returns `{"status": ...}` for success and failure alike; "raise"
            returns the plain result and raises the typed error. A refusal is data in both.
            Or a handler of `toolfault.handlers`, or several: they decide error by error.
        writes: whether a call can change anything; say False for tools that only read.
        idempotent: whether the same call may be repeated without harm.
        owner: who takes a failure from here.
        owner_contact: how to reach them.
        runbook: address of the next steps.
        reasons: declared reasons with the words for the user.
        error_map: rules for the exceptions the body may raise; asked before the transport map.
        max_attempts: attempts per call, the first included.
        budget_limit: answers in a row that say "later" before the model is told to stop.
        timeout: seconds per attempt; async functions only.
        check: called with the result, or each item of a stream; raises when it may not enter the
            run.

    Raises:
        ValueError: an option that does not fit, said with what to do instead.
        TypeError: what is decorated is not a function, or a handler is none.
    """
    mode, decide = _decided(on_error)
    _require_sane(locals() | {"on_error": mode})
    tool = Tool(
        name=name,
        writes=writes,
        idempotent=idempotent,
        owner=owner,
        owner_contact=owner_contact,
        runbook=runbook,
        reasons=dict(reasons or {}),
    )
    hook = Hook(
        tool=tool,
        on_error=mode,
        error_map=error_map.before(TRANSPORT) if error_map else TRANSPORT,
        max_attempts=max_attempts,
        budget_limit=budget_limit,
        timeout=timeout,
        check=check,
        decide=decide,
    )

    def decorate(function: F) -> F:
        inner = _function(name, function)
        guarded: F = wrapped(keyed(name, inner), hook)
        declared.declare(tool)
        kind: Any = type(function)  # of method, where it is one
        return guarded if inner is function else kind(guarded)

    return decorate


def _function(tool: str, given: Any) -> Any:
    """What does the work: also inside of a `staticmethod` or a `classmethod`."""
    if isinstance(given, staticmethod | classmethod):
        return given.__func__
    if isinstance(given, type) or not callable(given):
        what = f"the class {given.__name__}" if isinstance(given, type) else repr(given)
        raise TypeError(
            f"@guard({tool!r}) is on {what}; put it on the function or method that does the work"
        )
    return given


def _decided(on_error: OnError | Handler | Sequence[Handler]) -> tuple[OnError, Decide | None]:
    if isinstance(on_error, str):
        return on_error, None
    handlers = (on_error,) if callable(on_error) else on_error
    if not isinstance(handlers, Sequence) or not handlers:
        raise ValueError(f"on_error is {on_error!r}; {_SANE['on_error'][1]}")
    for handler in handlers:
        if not _is_handler(handler):
            name = getattr(handler, "__name__", repr(handler))
            raise TypeError(
                f"on_error is {name}, which takes no error and context: where it makes a handler, "
                f"write {name}()"
            )
    return "envelope", deciding(handlers)


def _is_handler(given: Any) -> bool:
    try:
        inspect.signature(given).bind(None, None)
    except ValueError:  # a function of C that does not say what it takes
        return True
    except TypeError:
        return False
    return True


def _require_sane(options: Mapping[str, Any]) -> None:
    """A wrong option is said where it is written, not by the first call that meets it."""
    for name, (fits, told) in _SANE.items():
        if not fits(options[name]):
            raise ValueError(f"{name} is {options[name]!r}; {told}")


def _are_reasons(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        is_reason(reason) and isinstance(words, str) for reason, words in value.items()
    )


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_wait(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and 0 < value < float("inf"))


_SANE: dict[str, tuple[Callable[[Any], bool], str]] = {
    "name": (
        lambda name: isinstance(name, str) and name.isprintable() and 0 < len(name) <= MAX_NAME,
        'give the tool\'s name: write @guard("book_meeting")',
    ),
    "on_error": (("envelope", "raise").__contains__, "write 'envelope', 'raise' or a handler"),
    "writes": (lambda value: isinstance(value, bool), "write True or False"),
    "idempotent": (lambda value: isinstance(value, bool), "write True or False"),
    "reasons": (
        lambda reasons: reasons is None or _are_reasons(reasons),
        'write a dict of snake_case codes: {"slot_taken": "words for the user"}',
    ),
    "error_map": (
        lambda rules: rules is None or isinstance(rules, ToolErrorMap),
        "write ToolErrorMap({ValueError: ...})",
    ),
    "max_attempts": (_is_count, "the first attempt counts, give 1 or more"),
    "budget_limit": (_is_count, "give 1 or more"),
    "timeout": (_is_wait, "give seconds, more than 0"),
    "check": (
        lambda check: check is None or callable(check),
        "give a function that takes the result and raises when it may not enter the run",
    ),
    **dict.fromkeys(
        ("owner", "owner_contact", "runbook"),
        (lambda value: value is None or isinstance(value, str), "write text"),
    ),
}

"""The error tree a tool raises from.

ToolError
├── ToolFailure                   tried and could not finish          failed
│   └── ToolResultError           what came back may not enter the run   failed, effect applied
├── ToolTimedOutError             outran its time                     timed_out
├── ToolRefusal                   worked and said no                  declined
├── ToolNotPermittedError         a permission decision; nothing ran  refused
├── ToolArgumentValidationError   the arguments did not match         invalid
└── ToolNotFoundError             no such tool                        not_found

Each carries a stable code and the author's stable reason. A code is asked for at construction,
because a failure nobody can name is one nobody can write a rule about.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any, ClassVar, TypeVar

from toolfault import taxonomy
from toolfault.conventions import MAX_NAME
from toolfault.taxonomy import Code, Effect, Outcome

_REASON = re.compile(r"[a-z][a-z0-9_]*")


def is_reason(value: object) -> bool:
    """Whether it is a snake_case code that a tool may give as its reason."""
    return (
        isinstance(value, str) and len(value) <= MAX_NAME and _REASON.fullmatch(value) is not None
    )


class ToolError(Exception):
    """Base of every typed tool error. Raise one of its subclasses.

    Args:
        tool: name of the tool; the guard's own name wins in telemetry.
        reason: stable snake_case code of the author, public API of the tool.
        message: what the model may read (at most 300 characters are kept); default from the code.
        code: kind of failure; where the outcome allows but one, it is that.
        transient: nothing landed and the same call could succeed.
        retry_after: seconds to wait before the same call.
        field: name of the argument that is wrong.
        effect: whether the action landed, where the author knows it.
        evidence: one sentence saying how that is known.
        user_message: words for the user.

    Raises:
        ValueError: the reason is not snake_case, or a number or word is outside its set.
        TypeError: what is to be text or a bool is something else.
    """

    outcome: ClassVar[Outcome] = Outcome.FAILED
    # Defaults for a subclass that does not call `super().__init__`.
    tool, reason, code = "", taxonomy.UNMAPPED_FAILURE, Code.INTERNAL
    message: str | None = None
    transient = False
    retry_after: float | None = None
    field: str | None = None
    effect: Effect | None = None
    evidence: str | None = None
    user_message: str | None = None
    #: The exception this error was translated from; never shown to a model.
    raw_error: BaseException | None = None
    #: The call's reference and what its model was to read, once the call is over.
    reference_id: str | None = None
    answer: dict[str, Any] | None = None

    def __init__(
        self,
        tool: str,
        reason: str,
        *,
        message: str | None = None,
        code: Code | str | None = None,
        transient: bool = False,
        retry_after: float | None = None,
        field: str | None = None,
        effect: Effect | str | None = None,
        evidence: str | None = None,
        user_message: str | None = None,
    ) -> None:
        for name, text in (
            ("message", message),
            ("field", field),
            ("evidence", evidence),
            ("user_message", user_message),
        ):
            if text is not None and not isinstance(text, str):
                raise TypeError(f"{name} is a {type(text).__name__}; write text")
        if not isinstance(transient, bool):
            raise TypeError(f"transient is {transient!r}; write True or False")
        if not is_reason(reason):
            raise ValueError(
                f"reason {reason!r} is not a snake_case code; write one such as 'slot_taken'"
            )
        is_wait = isinstance(retry_after, int | float | None)
        if not is_wait or (retry_after is not None and not 0 <= retry_after < float("inf")):
            raise ValueError(f"retry_after is {retry_after!r}; give seconds, 0 or more")
        self.tool = tool
        self.reason = reason
        self.message = message
        self.code = self._code_of_outcome(code)
        self.transient = transient
        self.retry_after = None if retry_after is None else float(retry_after)
        self.field = field
        self.effect = None if effect is None else _member(Effect, "effect", effect)
        self.evidence = evidence
        self.user_message = user_message
        super().__init__(tool, reason)

    def _code_of_outcome(self, told: Code | str | None) -> Code:
        only = taxonomy.FIXED_CODE.get(self.outcome)
        if only is not None and told not in (None, only):
            raise ValueError(f"code is {told!r}; that of a {type(self).__name__} is always {only}")
        return only or _member(Code, "code", told)

    @property
    def error_type(self) -> str:
        """The code; frameworks such as ADK write it to the span's `error.type`."""
        return self.code.value

    def __str__(self) -> str:
        told = self.message or taxonomy.MESSAGES[self.code]
        return f"{self.tool}: {self.reason} ({self.code}). {told}"

    def __copy__(self) -> ToolError:
        return _rebuilt(type(self), self.args, *_held(self))

    def __reduce__(self) -> tuple[Any, ...]:
        # The raw error stays in its process: its text is for nobody else, and few can be pickled.
        fields, slots = _held(self)
        kept = {name: value for name, value in fields.items() if name != "raw_error"}
        return _rebuilt, (type(self), self.args, kept, slots)


_Member = TypeVar("_Member", bound=StrEnum)


def _member(kind: type[_Member], name: str, told: Any) -> _Member:
    if isinstance(told, kind):
        return told
    try:
        return kind(told)
    except ValueError:
        raise ValueError(f"{name} is {told!r}; write one of {', '.join(kind)}") from None


def _held(error: ToolError) -> tuple[dict[str, Any], dict[str, Any]]:
    """What it holds, and what it holds in the `__slots__` of a subclass."""
    state: Any = object.__getstate__(error)
    return state if isinstance(state, tuple) else (error.__dict__, {})


def _rebuilt(
    kind: type[ToolError], args: tuple[Any, ...], fields: dict[str, Any], slots: dict[str, Any]
) -> ToolError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(fields)
    for name, value in slots.items():
        object.__setattr__(error, name, value)
    return error


def taken_over(error: ToolError) -> ToolError:
    """A copy that belongs to one call, with the traceback, which the error itself loses.

    An author may raise one instance again and again, from several threads: each time its traceback
    would grow, and what one caller holds would be given the reference of another call.
    """
    try:
        own = ToolError.__copy__(error)
    except Exception:  # noqa: BLE001 - the author's `__new__` runs here: raise what it raised, not its fault
        return error
    own.__cause__, own.__context__ = error.__cause__, error.__context__
    own.__suppress_context__ = error.__suppress_context__
    BaseException.with_traceback(own, error.__traceback__)
    BaseException.with_traceback(error, None)
    return own


class ToolFailure(ToolError):  # noqa: N818 - the name its users know
    """The tool tried and could not finish.

    `transient=True` is the author saying that nothing landed and the same call could succeed; the
    code is then `UNAVAILABLE` unless given. A permanent failure needs its code.
    """

    def __init__(
        self,
        tool: str,
        reason: str,
        *,
        transient: bool = False,
        code: Code | str | None = None,
        **details: Any,
    ) -> None:
        if code is None:
            if not transient:
                raise ValueError(
                    f"{type(self).__name__}({tool!r}, {reason!r}) needs a code, for example "
                    "code='INTERNAL', or transient=True if nothing landed and a retry can succeed"
                )
            code = Code.UNAVAILABLE
        super().__init__(tool, reason, transient=transient, code=code, **details)


class ToolResultError(ToolFailure):
    """What the tool returned may not enter the run. The action itself was applied."""

    def __init__(self, tool: str, reason: str = taxonomy.INVALID_RESULT, **details: Any) -> None:
        super().__init__(tool, reason, **{"code": Code.INTERNAL} | details)


class ToolTimedOutError(ToolError):
    """The call outran its time; whether it took effect is not known unless stated."""

    outcome = Outcome.TIMED_OUT

    def __init__(self, tool: str, reason: str = taxonomy.TIMED_OUT, **details: Any) -> None:
        super().__init__(tool, reason, **details)


class ToolRefusal(ToolError):  # noqa: N818 - an answer, not an error
    """The tool worked and declined: an answer, delivered once as data and never retried.

    The code is `CONFLICT` unless given.
    """

    outcome = Outcome.DECLINED

    def __init__(
        self,
        tool: str,
        reason: str,
        message: str,
        *,
        code: Code | str = Code.CONFLICT,
        **details: Any,
    ) -> None:
        super().__init__(tool, reason, message=message, code=code, **details)


class ToolNotPermittedError(ToolError):
    """Policy or a person did not permit the call; nothing ran."""

    outcome = Outcome.REFUSED

    def __init__(self, tool: str, reason: str = taxonomy.NOT_PERMITTED, **details: Any) -> None:
        super().__init__(tool, reason, **details)


class ToolArgumentValidationError(ToolError):
    """The arguments did not match what the tool takes."""

    outcome = Outcome.INVALID

    def __init__(self, tool: str, reason: str = taxonomy.INVALID_ARGUMENTS, **details: Any) -> None:
        super().__init__(tool, reason, **details)


class ToolNotFoundError(ToolError):
    """The model named a tool that does not exist: usually one that was renamed."""

    outcome = Outcome.NOT_FOUND

    def __init__(self, tool: str, reason: str = taxonomy.UNKNOWN_TOOL, **details: Any) -> None:
        super().__init__(tool, reason, **details)

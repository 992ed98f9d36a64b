"""Translates the exceptions of libraries into the taxonomy, declaratively.

Three things a map does not do: guess (an exception no rule knows is a permanent
`unmapped_failure`), swallow cancellation (what is not an `Exception` is raised again), overrule
the author (an error already in the taxonomy is returned untouched).

An exception is looked at first, then what it was raised `from`, and so on: the outermost one that
a rule knows decides. What it was raised *while handling* (`__context__`) is circumstance, not
cause: a `KeyError` in the handler of a refused connection is a bug, and repeating the call because
of the connection would repeat whatever the handler had done. A context counts only where the
exception itself holds it among its arguments, as those of requests and urllib do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from toolfault import carried, taxonomy
from toolfault.errors import ToolError, ToolFailure, ToolRefusal, ToolResultError, ToolTimedOutError
from toolfault.taxonomy import Code, Effect

#: An exception type, or its dotted name.
Key = TypeVar("Key", bound=type[BaseException] | str)
#: Makes the typed error: (tool, the exception it is for) -> error, or None: does not apply.
Rule = Callable[[str, BaseException], ToolError | None]


def transient(
    reason: str, *, code: Code = Code.UNAVAILABLE, retry_after: float | None = None
) -> Rule:
    """Nothing landed and the same call could succeed.

    A wait the other side asks for (`Retry-After`) is kept; else `retry_after`, in seconds.

    Raises:
        ValueError: the reason is not snake_case, or a number or word is outside its set; so do
            `permanent`, `refusal` and `timed_out`.
    """
    return _checked(
        lambda tool, error: ToolFailure(
            tool,
            reason,
            transient=True,
            code=code,
            retry_after=_first(carried.retry_after(error), retry_after),
        )
    )


def permanent(
    reason: str, *, code: Code, message: str | None = None, effect: Effect | None = None
) -> Rule:
    """The same call would fail again, or nobody knows what it did."""
    return _checked(
        lambda tool, error: ToolFailure(
            tool,
            reason,
            code=code,
            message=message,
            effect=effect,
            retry_after=carried.retry_after(error),
        )
    )


def refusal(reason: str, message: str, *, code: Code = Code.CONFLICT) -> Rule:
    """The tool worked and declined."""
    return _checked(lambda tool, _: ToolRefusal(tool, reason, message, code=code))


def timed_out(reason: str = taxonomy.TIMED_OUT, *, effect: Effect | None = None) -> Rule:
    """Time ran out while nobody knows what the other side did."""
    return _checked(
        lambda tool, error: ToolTimedOutError(
            tool, reason, effect=effect, retry_after=carried.retry_after(error)
        )
    )


def by_status(fallback: Rule) -> Rule:
    """The statuses of the same map decide, `fallback` where none of them matches."""
    return _ByStatus(fallback)


def by_cause(fallback: Rule) -> Rule:
    """What the exception was raised from decides, `fallback` where no rule knows that."""
    return _ByCause(fallback)


@dataclass(frozen=True, slots=True)
class _Fallback:
    rule: Rule

    def __call__(self, tool: str, error: BaseException) -> ToolError | None:
        return self.rule(tool, error)


class _ByStatus(_Fallback):
    """Asked after the statuses."""


class _ByCause(_Fallback):
    """Asked after the rules for the cause."""


def _checked(rule: Rule) -> Rule:
    """The rule, tried once: a mistake shows where the map is written, not when a tool fails."""
    rule("tool", Exception())
    return rule


def _first(told: float | None, default: float | None) -> float | None:
    return default if told is None else told


class ToolErrorMap:
    """Rules by exception type, else by the status an exception carries.

    Args:
        types: rules by type, or by its dotted name ("httpx.ConnectError") where one does not want
            to import it; the most specific one in the exception's MRO wins.
        statuses: rules by `status_code`, `status`, `.response.status_code` or `.response.status`;
            asked where no type rule matches, or where the type rule is `by_status`.
        otherwise: a map to ask next.

    Raises:
        ValueError: a key or rule that could never be used.
    """

    def __init__(
        self,
        types: Mapping[Key, Rule] | None = None,
        *,
        statuses: Mapping[int, Rule] | None = None,
        otherwise: ToolErrorMap | None = None,
    ) -> None:
        self._types: dict[type[BaseException] | str, Rule] = dict((types or {}).items())
        self._statuses = dict(statuses or {})
        for key, rule in self._types.items():
            if not _is_exception(key):
                raise ValueError(
                    f"{key!r} is no exception: give its type or its dotted name; statuses have a "
                    "dict of their own, statuses={...}"
                )
            _require_rule(key, rule)
        for status, rule in self._statuses.items():
            if not isinstance(status, int) or not 100 <= status <= 599:
                raise ValueError(f"{status!r} is no status: give a number from 100 to 599")
            _require_rule(status, rule)
        self._otherwise = otherwise

    def classify(self, error: BaseException, *, tool: str) -> ToolError:
        """The typed error for `error`.

        Raises:
            BaseException: `error` itself, where it is not an `Exception` (cancellation, exit).
        """
        if not isinstance(error, Exception):
            raise error
        return self._classified(error, tool, set())

    def before(self, other: ToolErrorMap) -> ToolErrorMap:
        """A map with these rules, with `other` asked where no rule here matches."""
        otherwise = self._otherwise.before(other) if self._otherwise else other
        return ToolErrorMap(self._types, statuses=self._statuses, otherwise=otherwise)

    def _classified(self, error: BaseException, tool: str, seen: set[int]) -> ToolError:
        fallback: ToolError | None = None
        for link in carried.links(error, seen):
            if isinstance(link, ToolError):
                return link
            if isinstance(link, ExceptionGroup):
                return self._of_group(link, tool, seen)
            found, final = self._matched(link, tool)
            if found is not None and final:
                return found
            fallback = fallback or found
        return fallback or ToolFailure(tool, taxonomy.UNMAPPED_FAILURE, code=Code.INTERNAL)

    def _of_group(self, group: ExceptionGroup[Exception], tool: str, seen: set[int]) -> ToolError:
        """One error for what failed together: transient only if every part of it is."""
        return max(
            (self._classified(leaf, tool, set(seen)) for leaf in group.exceptions), key=_risk
        )

    def _matched(self, error: BaseException, tool: str) -> tuple[ToolError | None, bool]:
        """What the first rule that applies says, and whether its word is final."""
        for rule in self._rules_for(error):
            if (found := rule(tool, error)) is not None:
                return found, not isinstance(rule, _ByCause)
        return None, True

    def _rules_for(self, error: BaseException) -> Iterator[Rule]:
        status = carried.status(error)
        by_status = None if status is None else self._statuses.get(status)
        for kind in type(error).__mro__:
            rule = self._types.get(kind) or self._types.get(
                f"{kind.__module__}.{kind.__qualname__}"
            )
            if isinstance(rule, _ByStatus) and by_status is not None:
                yield by_status
            if rule is not None:
                yield rule
        if by_status is not None:
            yield by_status
        if self._otherwise is not None:
            yield from self._otherwise._rules_for(error)  # noqa: SLF001 - a map of the same kind


def _risk(error: ToolError) -> tuple[bool, int, bool, float]:
    """How much care an error asks for; of those that failed together the greatest decides."""
    effect = error.effect
    if effect is None and isinstance(error, ToolResultError):
        effect = Effect.APPLIED
    if effect is None:
        effect = taxonomy.effect_of(
            error.outcome, error.code, writes=True, nothing_landed=error.transient
        )
    landed = (Effect.NONE, Effect.UNKNOWN, Effect.APPLIED).index(effect)
    return not error.transient, landed, error.code is Code.INTERNAL, error.retry_after or 0.0


def _is_exception(key: object) -> bool:
    if isinstance(key, str):
        return "." in key
    return isinstance(key, type) and issubclass(key, BaseException)


def _require_rule(key: object, rule: object) -> None:
    if not callable(rule) or rule in (
        transient,
        permanent,
        refusal,
        timed_out,
        by_status,
        by_cause,
    ):
        raise ValueError(
            f"the rule for {key!r} is {rule!r}; write transient(...), permanent(...) or refusal(...)"
        )

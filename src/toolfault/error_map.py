"""Translates the exceptions of libraries into the taxonomy, declaratively.

Three things a map does not do: guess (an exception no rule knows is a permanent
`unmapped_failure`), swallow cancellation (what is not an `Exception` is raised again), overrule
the author (an error already in the taxonomy is returned untouched).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from toolfault.errors import ToolError, ToolFailure, ToolRefusal, ToolTimedOutError
from toolfault.taxonomy import UNMAPPED_FAILURE, Code, Effect

#: Makes the typed error: (tool, the exception it is for) -> error.
Rule = Callable[[str, BaseException], ToolError]


def transient(
    reason: str, *, code: Code = Code.UNAVAILABLE, retry_after: float | None = None
) -> Rule:
    """Nothing landed and the same call could succeed."""
    return lambda tool, _: ToolFailure(
        tool, reason, transient=True, code=code, retry_after=retry_after
    )


def permanent(
    reason: str, *, code: Code, message: str | None = None, effect: Effect | None = None
) -> Rule:
    """The same call would fail again."""
    return lambda tool, _: ToolFailure(tool, reason, code=code, message=message, effect=effect)


def refusal(reason: str, message: str, *, code: Code = Code.CONFLICT) -> Rule:
    """The tool worked and declined."""
    return lambda tool, _: ToolRefusal(tool, reason, message, code=code)


def timed_out(*, effect: Effect | None = None) -> Rule:
    """Time ran out while nobody knows what the other side did."""
    return lambda tool, _: ToolTimedOutError(tool, effect=effect)


class ToolErrorMap:
    """Rules by exception type, else by the status an exception carries.

    Args:
        types: rules by type; the most specific one in the exception's MRO wins.
        statuses: rules by `status_code`, `status` or `.response.status_code`.
        otherwise: a map to ask next.
    """

    def __init__(
        self,
        types: Mapping[type[BaseException], Rule] | None = None,
        *,
        statuses: Mapping[int, Rule] | None = None,
        otherwise: ToolErrorMap | None = None,
    ) -> None:
        self._types = dict(types or {})
        self._statuses = dict(statuses or {})
        self._otherwise = otherwise

    def classify(self, error: BaseException, *, tool: str) -> ToolError:
        """The typed error for `error`.

        Raises:
            BaseException: `error` itself, where it is not an `Exception` (cancellation, exit).
        """
        if not isinstance(error, Exception):
            raise error
        for link in chain(error):
            if isinstance(link, ToolError):
                return link
            if (rule := self.rule_for(link)) is not None:
                return rule(tool, link)
        return ToolFailure(tool, UNMAPPED_FAILURE, code=Code.INTERNAL)

    def before(self, other: ToolErrorMap) -> ToolErrorMap:
        """A map with these rules, with `other` asked where no rule here matches."""
        otherwise = self._otherwise.before(other) if self._otherwise else other
        return ToolErrorMap(self._types, statuses=self._statuses, otherwise=otherwise)

    def rule_for(self, error: BaseException) -> Rule | None:
        """The rule for one exception, its causes not considered."""
        for kind in type(error).__mro__:
            if kind in self._types:
                return self._types[kind]
        status = status_of(error)
        if status is not None and status in self._statuses:
            return self._statuses[status]
        return None if self._otherwise is None else self._otherwise.rule_for(error)


def chain(error: BaseException) -> Iterator[BaseException]:
    """The exception, then its causes, outermost first."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__


def status_of(error: BaseException) -> int | None:
    """The HTTP status an exception carries, or None."""
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "status"):
            status: Any = getattr(holder, name, None)
            if isinstance(status, int) and 100 <= status <= 599:
                return status
    return None


#: Transport knowledge every guard starts from; transient only where nothing landed.
TRANSPORT = ToolErrorMap(
    {
        ConnectionRefusedError: transient("upstream_unavailable"),
        TimeoutError: timed_out(),
        asyncio.TimeoutError: timed_out(),
    },
    statuses={
        401: permanent("upstream_unauthorized", code=Code.PERMISSION_DENIED),
        403: permanent("upstream_forbidden", code=Code.PERMISSION_DENIED),
        404: permanent("upstream_not_found", code=Code.NOT_FOUND),
        409: permanent("upstream_conflict", code=Code.CONFLICT),
        429: transient("upstream_rate_limited", code=Code.RATE_LIMITED),
        502: permanent("upstream_bad_gateway", code=Code.UNAVAILABLE),
        503: transient("upstream_unavailable"),
        504: permanent("upstream_gateway_timeout", code=Code.UNAVAILABLE),
    },
)

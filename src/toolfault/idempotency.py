"""A key under which the same work is recognised: the run, the tool and what it was asked.

A tool that has a parameter `idempotency_key` is given one; the model neither sees nor fills it.
The other side keeps the key, so that an attempt, a retry or a replay of the same call does nothing
a second time. Two calls of a run that ask for the same are one work: where they are two, an
argument has to say so.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import date, time
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, TypeVar
from uuid import UUID, uuid4

from toolfault.run import current_run
from toolfault.telemetry.current import current_call

F = TypeVar("F", bound=Callable[..., Any])

PARAMETER = "idempotency_key"
_LARGEST_EXACT = 2**53
_AS_TEXT = (date, time, Decimal, PurePath, UUID)


def idempotency_key(tool: str, arguments: Mapping[str, Any], *, run_id: str | None = None) -> str:
    """The key of a call: 32 hexadecimal digits, the same for equal arguments in any order.

    Args:
        tool: name of the tool.
        arguments: by name.
        run_id: id of the run; by default that of the current run. Outside of any the key is that
            of the current call, else a new one every time.

    Raises:
        TypeError: an argument that cannot be written down the same way every time.
    """
    told = _written([run_id or _scope(), tool, _canonical(arguments)])
    return hashlib.sha256(told.encode()).hexdigest()[:32]


def _scope() -> str:
    if (run := current_run()) is not None:
        return run.run_id
    call = current_call()
    return uuid4().hex if call is None else call.reference_id


def _written(canonical: Any) -> str:
    return json.dumps(canonical, separators=(",", ":"))


def _canonical(value: Any) -> Any:  # noqa: PLR0911 - one line for each kind
    """The value as JSON that is the same whoever wrote it: sorted, 1.0 as 1, tuples as lists."""
    if isinstance(value, Enum):
        return _canonical(value.value)
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < _LARGEST_EXACT else value
    if isinstance(value, Mapping):
        return [[str(key), _canonical(value[key])] for key in sorted(value, key=str)]
    if isinstance(value, list | tuple):
        return ["list", *map(_canonical, value)]
    if isinstance(value, set | frozenset):
        return ["set", *sorted(json.dumps(_canonical(item)) for item in value)]
    if isinstance(value, _AS_TEXT):
        return str(value)
    if callable(dump := getattr(value, "model_dump", None)):  # pydantic
        return _canonical(dump(mode="json"))
    raise TypeError(
        f"an idempotency key cannot be made of a {type(value).__name__}: hand idempotency_key= to "
        "the tool yourself, or take plain values"
    )


class _Keyed(functools.partial[Any]):
    """A function that is given its key. A `partial`, so that it counts as the kind it wraps."""

    tool: str
    named: inspect.Signature
    defaults: dict[str, str]

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get(PARAMETER) is None:
            given = self.named.bind_partial(*args, **kwargs).arguments
            # A default that is written out asks for the same work. It is left out and not filled
            # in: a parameter that a release adds must not change the keys of the calls without it.
            asked = {
                name: value
                for name, value in given.items()
                if name not in _NOT_ASKED
                and not (
                    name in self.defaults and _written(_canonical(value)) == self.defaults[name]
                )
            }
            kwargs[PARAMETER] = idempotency_key(self.tool, asked)
        return self.func(*args, **kwargs)


_NOT_ASKED = frozenset({PARAMETER, "self", "cls"})


def _defaults(signature: inspect.Signature) -> dict[str, str]:
    """The defaults of the parameters, as far as they can be written down."""
    written: dict[str, str] = {}
    for name, parameter in signature.parameters.items():
        if parameter.default is not parameter.empty:
            with suppress(TypeError):
                written[name] = _written(_canonical(parameter.default))
    return written


def keyed(tool: str, function: F) -> F:
    """The function; one that takes an `idempotency_key` is given it, and shows no such parameter."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # a function of C that does not say what it takes
        return function
    if PARAMETER not in signature.parameters:
        return function
    given: Any = _Keyed(function)
    functools.update_wrapper(given, function)
    given.tool, given.named, given.defaults = tool, signature, _defaults(signature)
    shown = [p for name, p in signature.parameters.items() if name != PARAMETER]
    given.__signature__ = signature.replace(parameters=shown)
    hints = {k: v for k, v in getattr(function, "__annotations__", {}).items() if k != PARAMETER}
    given.__annotations__ = hints
    keyed_function: F = given
    return keyed_function

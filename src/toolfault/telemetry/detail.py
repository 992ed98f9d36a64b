"""What an engineer needs of an exception: type, frames, message and stack, scrubbed.

The only signal that quotes an exception. `TOOLFAULT_EXCEPTION_DETAIL` = full | type | off.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import TypeVar

from toolfault import conventions as c
from toolfault.envelope import cut
from toolfault.redact import cap, scrub_stack
from toolfault.telemetry import events
from toolfault.telemetry.record import Attributes

#: An exception, or what `traceback` makes of it: the chain has the same names in both.
Link = TypeVar("Link", BaseException, traceback.TracebackException)

VARIABLE = "TOOLFAULT_EXCEPTION_DETAIL"
_LEVELS = ("full", "type", "off")
_INNERMOST = 2048  # characters of the formatted stack, from its end
_MOST_FRAMES = 100
_LINKS = 10  # exceptions of a chain
_MOST_KNOWN = 128  # stacks, of at most 8 KiB


def level() -> str:
    """How much of an exception is sent; anything unexpected in the variable means `type`."""
    told = os.environ.get(VARIABLE, "full").strip().lower()
    return told if told in _LEVELS else "type"


def type_name(error: BaseException) -> str:
    """`module.Class`, without the module for built-ins."""
    kind = type(error)
    name = (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )
    return cut(name, c.MAX_NAME)


def frame_of(error: BaseException) -> str | None:
    """`module:function` of the innermost frame outside libraries, else of the innermost that is not of this one."""
    last = ours = None
    traced = error.__traceback__
    while traced is not None:
        frame = traced.tb_frame
        place = f"{frame.f_globals.get('__name__', '?')}:{frame.f_code.co_name}"
        if not _is_library(frame.f_code.co_filename):
            ours = place
        elif not frame.f_code.co_filename.startswith(_own_root()):
            last = place
        traced = traced.tb_next
    found = ours or last
    return None if found is None else cut(found, c.MAX_NAME)


@cache
def _library_roots() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    found = (paths["stdlib"], paths["purelib"], paths["platlib"], _own_root(), sys.prefix + "/lib")
    return tuple(set(found))


@cache
def _own_root() -> str:
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - hot


@cache
def _is_library(filename: str) -> bool:
    # The demo stands in for an agent's own code.
    return (
        filename.startswith((*_library_roots(), "<frozen")) and "/toolfault/demo/" not in filename
    )


def emit(error: BaseException, reference_id: str, place: events.Place) -> None:
    """Send the exception detail of a failed call, stamped with its reference."""
    told = level()
    if told == "off":
        return
    attributes: Attributes = {c.REFERENCE_ID: reference_id, c.EXCEPTION_TYPE_OTEL: type_name(error)}
    if told == "full":
        attributes[c.EXCEPTION_MESSAGE] = _capped(_text(error), c.MAX_TEXT)
        attributes[c.EXCEPTION_STACKTRACE] = stack(error)
    events.emit(c.EXCEPTION, attributes, place=place, severity=events.ERROR)


def _text(error: BaseException) -> str:
    try:
        return str(error)[: 2 * c.MAX_TEXT]
    except Exception:  # noqa: BLE001 - a stranger's __str__
        return "[unprintable]"


def stack(error: BaseException) -> str:
    """All frames as file, line and function, then the innermost 2 KiB of the stack; scrubbed."""
    # A bug comes again and again, and to format its stack takes longer than all else of the report.
    key = _likeness(error)
    told = _known.get(key) if key else None
    if told is None:
        told = _formatted(error)
        if key:
            if len(_known) >= _MOST_KNOWN:
                _known.clear()
            _known[key] = told
    return told


_known: dict[tuple[object, ...], str] = {}


def _likeness(error: BaseException) -> tuple[object, ...]:
    """What is equal where two stacks are; empty where that is not worth its memory, or not known."""
    links = list(_links(error))
    if len(links) == _LINKS:
        return ()
    told: list[object] = []
    for link in links:
        text = _text(link)
        if len(text) > c.MAX_TEXT or hasattr(link, "exceptions") or hasattr(link, "__notes__"):
            return ()
        told += (type(link), text)
        for frame, line in traceback.walk_tb(link.__traceback__):
            told.append((frame.f_code.co_filename, line, frame.f_code.co_name))
    return tuple(told) if len(told) <= _MOST_FRAMES else ()


def _formatted(error: BaseException) -> str:
    try:
        taken = traceback.TracebackException.from_exception(error)
        _forget_columns(taken)
        formatted = "".join(taken.format())
    except Exception:  # noqa: BLE001 - a stranger's __str__
        return "[unprintable]"
    frames = cut("\n".join(_frames(taken)), c.MAX_STACK - _INNERMOST - 2)
    # Scrubbed with what stands before it, so that the cut does not begin inside a secret.
    innermost = scrub_stack(formatted[-2 * _INNERMOST :])[-_INNERMOST:]
    return f"{scrub_stack(frames)}\n\n{innermost}"


#: A bug comes again and again with the same text.
_capped = lru_cache(maxsize=128)(cap)


def _forget_columns(taken: traceback.TracebackException) -> None:
    """Without carets under each line: to place them Python parses the line, a fifth of the time."""
    for link in _links(taken):
        for frame in link.stack:
            frame.colno = None


def _frames(taken: traceback.TracebackException) -> list[str]:
    told: list[str] = []
    for link in _links(taken):
        told.append(f"{getattr(link.exc_type, '__name__', '?')}:")
        told += [f"  {f.filename}:{f.lineno} {f.name}" for f in link.stack[-_MOST_FRAMES:]]
    return told


def _links(error: Link) -> Iterator[Link]:
    """The exceptions that are told one after the other, the last one raised first."""
    link: Link | None = error
    for _ in range(_LINKS):
        if link is None:
            return
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)

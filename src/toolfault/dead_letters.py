"""Work that could not be completed: recorded for later, replayed by whoever recorded it.

from toolfault import dead_letters

dead_letters.record({"order_id": "A-1042", "amount": 12.5}, tool="refund_order", error=error)
...
dead_letters.replay(lambda letter: refund_order(**letter.payload))  # a job, later

A replay runs in the caller's process, in a run with the id of the first one, so that a tool that
takes an `idempotency_key` gets the same key again: what a killed replay has done already is not
done twice.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from toolfault import client, safe_log
from toolfault import conventions as c
from toolfault.client import ServiceError
from toolfault.model_errors import typed
from toolfault.redact import scrub_attributes
from toolfault.run import Run, current_run
from toolfault.telemetry import events, run_events
from toolfault.telemetry.record import Attributes

__all__ = ["Letter", "Replayed", "ServiceError", "record", "replay"]

_log = logging.getLogger(__name__)
_PAGE = 200
_DEFAULT_URL = "http://127.0.0.1:8700"


class Letter(NamedTuple):
    """A dead letter as its replay gets it."""

    id: str  # the same in every replay
    at: str
    service: str
    environment: str
    tool: str | None
    reference: str | None
    run_id: str | None
    conversation_id: str | None
    code: str | None
    reason: str | None
    payload: dict[str, Any]


class Replayed(NamedTuple):
    """What a replay did."""

    done: int
    failed: int  # their handler raised: they go on waiting
    skipped: int  # without a payload: somebody has to look at them


class _Service(NamedTuple):
    url: str
    token: str | None


def record(
    payload: Mapping[str, Any],
    *,
    tool: str | None = None,
    error: Exception | None = None,
    reference_id: str | None = None,
    run: Run | None = None,
) -> bool:
    """Leave a dead letter; whether it was handed to telemetry.

    Args:
        payload: what the replay needs, as plain JSON values of at most 4,096 characters. It is
            scrubbed: give ids by which the rest is found, not texts, names or addresses.
        tool: the tool whose work it is.
        error: what kept it from being done.
        reference_id: of the call; by default the one the error carries.
        run: the run it belongs to, where its scope has ended; by default the current one.

    Raises:
        ValueError: the payload is no JSON or too long; nothing could ever be replayed from it.
        TypeError: it is no mapping.
    """
    told: Attributes = {c.PAYLOAD: _written(payload)}
    known = {c.TOOL_NAME: tool, c.REFERENCE_ID: reference_id}
    if error is not None:
        as_typed = typed(error)
        known |= {c.CODE: as_typed.code.value, c.REASON: as_typed.reason}
        known[c.REFERENCE_ID] = reference_id or as_typed.reference_id
    told |= {key: value for key, value in known.items() if value is not None}
    if not events.is_on():
        safe_log.log(
            _log,
            logging.ERROR,
            "a dead letter of %s is lost, for events go nowhere: call toolfault.configure() first, "
            "without OTEL_SDK_DISABLED",
            tool or "a run",
        )
        return False
    run_events.send(c.DEAD_LETTER, told, run or current_run(), events.WARN)
    return True


def _written(payload: Mapping[str, Any]) -> str:
    if not isinstance(payload, Mapping):
        raise TypeError(f"the payload of a dead letter is {payload!r}; give a dict")
    try:
        told = json.dumps(scrub_attributes(payload), allow_nan=False)
    except (TypeError, ValueError) as wrong:
        raise ValueError(f"the payload of a dead letter is plain JSON: {wrong}") from None
    if len(told) > c.MAX_TEXT:
        raise ValueError(
            f"the payload of a dead letter has {len(told)} characters, at most {c.MAX_TEXT} are "
            "kept: give the ids by which the rest is found"
        )
    return told


def replay(
    handler: Callable[[Letter], Any],
    *,
    service: str | None = None,
    tool: str | None = None,
    most: int = 100,
    url: str | None = None,
    token: str | None = None,
) -> Replayed:
    """Do what is waiting, oldest first; a letter is acknowledged once its handler has returned.

    Killed in between, a letter is handled again by the next replay: the handler's tools have to
    take an `idempotency_key`, or the handler `letter.id` as one. What a handler raises is logged,
    and the letter goes on waiting.

    Args:
        handler: does the work; it may be async.
        service: only letters of this `service.name`.
        tool: only letters of this tool.
        most: letters to handle at most.
        url: of the service; by default TOOLFAULT_URL, else http://127.0.0.1:8700.
        token: with the role engineer; by default TOOLFAULT_TOKEN.

    Raises:
        ServiceError: no service answers, or the token may not do this.
        RuntimeError: the handler is async, and so is the caller.
    """
    _require_no_loop(handler)
    asked = _asked(url, token)
    done = failed = skipped = 0
    for waiting in _oldest_first(asked, service, tool)[:most]:
        letter = _letter(client.dead_letter(asked, waiting))
        if letter is None:
            skipped += 1
        elif _handled(handler, letter):
            client.acknowledge(asked, letter.id)  # False: another replay was faster
            done += 1
        else:
            failed += 1
    return Replayed(done, failed, skipped)


def _asked(url: str | None, token: str | None) -> _Service:
    chosen = (url or os.environ.get("TOOLFAULT_URL") or _DEFAULT_URL).rstrip("/")
    if urlsplit(chosen).scheme not in ("http", "https"):
        raise ServiceError(f"TOOLFAULT_URL is {chosen!r}; give an http:// or https:// address.")
    return _Service(chosen, token or os.environ.get("TOOLFAULT_TOKEN"))


def _oldest_first(asked: _Service, service: str | None, tool: str | None) -> list[str]:
    return list(_waiting(asked, service, tool))[::-1]


def _waiting(asked: _Service, service: str | None, tool: str | None) -> Iterator[str]:
    cursor = None
    while True:
        page = client.page(
            asked, "dead-letters", service=service, tool=tool, size=_PAGE, cursor=cursor
        )
        yield from (item["id"] for item in page["items"])
        if (cursor := page["next"]) is None:
            return


def _letter(found: dict[str, Any]) -> Letter | None:
    if not found["payload"] or found["acknowledged_at"]:
        return None
    return Letter(**{name: found[name] for name in Letter._fields})


def _require_no_loop(handler: Callable[[Letter], Any]) -> None:
    if not inspect.iscoroutinefunction(handler):
        return
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError(
        "replay() runs an async handler in a loop of its own, and one is running here; "
        "write: await asyncio.to_thread(dead_letters.replay, handler)"
    )


def _handled(handler: Callable[[Letter], Any], letter: Letter) -> bool:
    try:
        with Run(letter.conversation_id, run_id=letter.run_id or letter.id):
            result = handler(letter)
            if inspect.isawaitable(result):
                asyncio.run(_finished(result))
    except Exception:  # noqa: BLE001 - the outermost loop of a job; logged with its traceback
        safe_log.log(
            _log,
            logging.ERROR,
            "the replay of dead letter %s failed; it goes on waiting",
            letter.id,
            exc_info=True,
        )
        return False
    return True


async def _finished(result: Any) -> Any:
    return await result

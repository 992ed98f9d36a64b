"""The failure budget: after so many answers in a row that say "later", the model is told to stop.

Counted per tool and conversation: `retry_later` and `check_before_retry`. An ok or declined call
resets the count. The tool stays callable: it is advice that changes, and a later success resets.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

from toolfault import safe_log

DEFAULT_LIMIT = 2
_KEY = "toolfault.failures:"
_HIGHEST = 1_000_000  # what a spoiled number is taken for
_LARGEST = 10_000  # conversations x tools that are failing now

_log = logging.getLogger(__name__)
_lock = threading.Lock()
_in_process: OrderedDict[str, int] = OrderedDict()


def failed(tool: str, conversation: str, state: MutableMapping[str, Any] | None) -> int:
    """Count one more failure; the consecutive failures so far.

    A mapping that raises costs nobody his call: the process counts instead.

    Args:
        tool: name of the tool.
        conversation: id of the conversation; used where `state` is None.
        state: a mapping that lives as long as the conversation, such as a session's state.
    """
    with _lock:
        if state is not None:
            with _tolerant():
                count = min(_number(state.get(_KEY + tool)) + 1, _HIGHEST)
                state[_KEY + tool] = count
                return count
        key = f"{tool}\0{conversation}"
        _in_process[key] = count = _in_process.get(key, 0) + 1
        _in_process.move_to_end(key)
        if len(_in_process) > _LARGEST:
            _in_process.popitem(last=False)
        return count


def reset(tool: str, conversation: str = "", state: MutableMapping[str, Any] | None = None) -> None:
    """Forget the failures of a tool in a conversation; called after ok and declined."""
    if state is not None:
        with _lock, _tolerant():
            if state.get(_KEY + tool):
                state[_KEY + tool] = 0
    if _in_process:
        with _lock:
            _in_process.pop(f"{tool}\0{conversation}", None)


@contextmanager
def _tolerant() -> Iterator[None]:
    try:
        yield
    except Exception:  # noqa: BLE001 - a session store that is away is not the tool's failure
        safe_log.log(
            _log,
            logging.WARNING,
            "the mapping of the failure budget failed; this process counts",
            exc_info=True,
        )


def _number(value: Any) -> int:
    # Session state comes back from JSON, a database or another program.
    is_count = isinstance(value, int) and not isinstance(value, bool)
    return min(value, _HIGHEST) if is_count and value >= 0 else 0

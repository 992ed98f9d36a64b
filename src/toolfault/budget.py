"""The failure budget: after so many answers in a row that say "later", the model is told to stop.

Counted per tool and conversation: `retry_later` and `check_before_retry`. An ok or declined call
resets the count. The tool stays callable: it is advice that changes, and a later success resets.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import MutableMapping
from typing import Any

DEFAULT_LIMIT = 2
_KEY = "toolfault.failures:"
_LARGEST = 10_000  # conversations x tools that are failing now

_lock = threading.Lock()
_in_process: OrderedDict[str, int] = OrderedDict()


def failed(tool: str, conversation: str, state: MutableMapping[str, Any] | None) -> int:
    """Count one more failure; the consecutive failures so far.

    Args:
        tool: name of the tool.
        conversation: id of the conversation; used where `state` is None.
        state: a mapping that lives as long as the conversation, such as a session's state.
    """
    with _lock:
        if state is not None:
            state[_KEY + tool] = count = _number(state.get(_KEY + tool)) + 1
            return count
        key = f"{tool}\0{conversation}"
        _in_process[key] = count = _in_process.get(key, 0) + 1
        _in_process.move_to_end(key)
        if len(_in_process) > _LARGEST:
            _in_process.popitem(last=False)
        return count


def reset(tool: str, conversation: str, state: MutableMapping[str, Any] | None) -> None:
    """Forget the failures of a tool in a conversation; called after ok and declined."""
    if state is not None:
        with _lock:
            if state.get(_KEY + tool):
                state[_KEY + tool] = 0
    elif _in_process:
        with _lock:
            _in_process.pop(f"{tool}\0{conversation}", None)


def _number(value: Any) -> int:
    # Session state comes back from JSON, a database or another program.
    return value if isinstance(value, int) and value >= 0 else 0

"""First line of redaction: the most common shapes of a secret, until the rule set is complete."""

from __future__ import annotations

import re
from functools import cache

UNSCRUBBABLE = "[unscrubbable]"


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile(
        r"(?i)\b(?:sk-|ghp_|xox[bp]-|AKIA|AIza)[\w-]{12,}|eyJ[\w-]{8,}\.[\w.-]{8,}"
        r"|(?:password|passwd|pwd|secret|api[_-]?key|token)[\"']?\s?[=:]\s?[\"']?[^\s\"'&,;\[]+"
    )


def scrub(text: str) -> str:
    """`text` with every recognised secret replaced by `[REDACTED:secret]`; never raises."""
    try:
        return _pattern().sub("[REDACTED:secret]", text)
    except Exception:  # noqa: BLE001 - a scrubber that fails must hide, not raise
        return UNSCRUBBABLE

"""Ids that are given as arguments, refused before a service is asked for them."""

from __future__ import annotations

import re

from toolfault.settings import SettingError

_ID = re.compile(r"[0-9a-f]{32}")


def letter(text: str) -> str:
    """The id of a dead letter.

    Raises:
        SettingError: it has not the form of one.
    """
    return _id(text, "a dead letter", "`toolfault dead-letters list` shows it")


def trace(text: str | None) -> str | None:
    """The id of a trace, where one is given.

    Raises:
        SettingError: it has not the form of one.
    """
    shown = "a card or `toolfault errors --csv` shows it"
    return None if text is None else _id(text, "a trace", shown)


def _id(text: str, of: str, where: str) -> str:
    given = text.strip().lower()
    if not _ID.fullmatch(given):
        raise SettingError(
            f"{text!r} is not the id of {of}. One has 32 characters, 0-9 and a-f; {where}."
        )
    return given

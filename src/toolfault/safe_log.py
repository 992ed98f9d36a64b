"""What the library itself has to say, to the application's log.

A handler of the application may raise, and so may an exception whose stack is to be written; a
tool call does not fail because something could not be logged.
"""

from __future__ import annotations

import contextlib
import logging


def log(
    logger: logging.Logger,
    level: int,
    text: str,
    *args: object,
    exc_info: bool | BaseException = False,
) -> None:
    """Log, and never raise.

    Args:
        logger: of the module that has something to say.
        level: such as `logging.WARNING`.
        text: the text, with places for `args`.
        *args: what goes into the text.
        exc_info: the exception whose stack is added, or True for the one being handled.
    """
    with contextlib.suppress(Exception):  # to log what was raised here would raise again
        logger.log(level, text, *args, exc_info=exc_info, stacklevel=2)

"""The `toolfault` command.

Its entry point is in the base wheel, which an agent installs alone: nothing here may need more.
"""

from __future__ import annotations

import sys

_INTERRUPTED = 130  # what shells say of a program that Ctrl-C ended


def main() -> None:
    """Run the command; say which extra is missing where one is."""
    try:
        from toolfault.cli.app import run  # noqa: PLC0415

        run()
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.startswith("toolfault"):
            raise
        extra = "dashboards" if missing.name == "grafanalib" else "server"
        sys.stderr.write(
            f"toolfault: the package {missing.name} is not installed. This command needs the "
            f'{extra} extra: pip install "toolfault[{extra}]"\n'
        )
        sys.exit(1)
    except KeyboardInterrupt:  # while the command is imported; afterwards it ends well by itself
        sys.exit(_INTERRUPTED)

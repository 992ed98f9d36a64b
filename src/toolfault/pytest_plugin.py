"""The contract kit's plugin for pytest: finds `tool_contract.py` and makes a test of each promise.

Installed with toolfault. Three kinds of tests come of the file: one for each case, one that every
declared reason has a case, and one that no reason was removed or given another meaning since
`tool_reasons.json` beside it was written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from toolfault.contract import Case, Driven, Reason, Reasons, changes, drive, missing, reasons_of
from toolfault.contract import problems as problems_of

FILE, SNAPSHOT = "tool_contract.py", "tool_reasons.json"
ACCEPT = "--accept-tool-reasons"
_NOTHING = (
    f"{FILE} has no CASES: write CASES = [toolfault.contract.Case(tool, reason, provoke), ...]"
)


class ContractBroken(Exception):  # noqa: N818 - shown without its name
    """What is wrong, in sentences; the whole report of a failed promise."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option that accepts reasons."""
    parser.getgroup("toolfault").addoption(
        ACCEPT,
        action="store_true",
        help=f"write the reasons of the tools to {SNAPSHOT}: new ones in a minor version, "
        "removed or changed ones in a major version alone",
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> ContractFile | None:
    """A contract where there is one."""
    return ContractFile.from_parent(parent, path=file_path) if file_path.name == FILE else None


class ContractFile(pytest.Module):
    """`tool_contract.py` of a project."""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        """One test for each case, one for those that are missing, one for the reasons."""
        for number, case in enumerate(self.cases):
            name = f"{case.tool}[{case.reason}]"
            yield CaseItem.from_parent(self, name=name, number=number)
        yield CoverageItem.from_parent(self, name="declared_reasons_have_cases")
        yield ReasonsItem.from_parent(self, name="reasons_are_stable")

    @cached_property
    def cases(self) -> list[Case]:
        """What the file lists."""
        found = list(getattr(self.obj, "CASES", ()))
        if not found:
            raise self.CollectError(_NOTHING)
        return found

    @cached_property
    def secrets(self) -> list[str]:
        """What its fakes have planted."""
        return list(getattr(self.obj, "SECRETS", ()))

    def driven(self, number: int) -> Driven:
        """What became of a case; it is brought about once."""
        results: dict[int, Driven] = self.__dict__.setdefault("results", {})
        if number not in results:
            results[number] = drive(self.cases[number])
        return results[number]

    def all_driven(self) -> list[Driven]:
        """What became of every case."""
        return [self.driven(number) for number in range(len(self.cases))]


class _Promise(pytest.Item):
    """A test whose failure is sentences."""

    parent: ContractFile

    def problems(self) -> list[str]:
        """What is wrong, nothing if the promise is kept."""
        raise NotImplementedError

    def runtest(self) -> None:
        """Fail with what is wrong."""
        if found := self.problems():
            raise ContractBroken("\n".join(found))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The sentences alone: a traceback of this plugin would say nothing."""
        if isinstance(excinfo.value, ContractBroken):
            return f"The contract of the tools is broken.\n{excinfo.value}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where it is listed."""
        return self.path, None, self.name


class CaseItem(_Promise):
    """One failure of one tool keeps the contract."""

    def __init__(self, *, number: int, **options: Any) -> None:
        super().__init__(**options)
        self.number = number

    def problems(self) -> list[str]:
        """What is wrong with how the tool failed."""
        return problems_of(self.parent.driven(self.number), self.parent.secrets)


class CoverageItem(_Promise):
    """Every declared reason has a case."""

    def problems(self) -> list[str]:
        """Reasons without cases, cases without reasons."""
        return missing(self.parent.cases)


class ReasonsItem(_Promise):
    """No reason was removed or given another meaning."""

    def problems(self) -> list[str]:
        """What has changed, with what to do about it."""
        snapshot = self.path.with_name(SNAPSHOT)
        now = reasons_of(self.parent.all_driven())
        if self.config.getoption(ACCEPT):
            snapshot.write_text(json.dumps(_plain(now), indent=2) + "\n", encoding="utf-8")
            return []
        if not snapshot.exists():
            return [f"there is no {SNAPSHOT} yet: run pytest {ACCEPT} once and commit it"]
        breaking, new = changes(_read(snapshot), now)
        if breaking:
            breaking.append(
                "Whoever relies on these reasons breaks: alerts, dashboards, other programs. Bring "
                f"them back, or raise the major version and accept it with pytest {ACCEPT}."
            )
        if new:
            new = ["New reasons, a minor version:", *new, f"Accept them with pytest {ACCEPT}."]
        return breaking + new


def _plain(reasons: Reasons) -> dict[str, dict[str, dict[str, str]]]:
    return {
        tool: {reason: meaning._asdict() for reason, meaning in found.items()}
        for tool, found in reasons.items()
    }


def _read(snapshot: Path) -> Reasons:
    try:
        told = json.loads(snapshot.read_text(encoding="utf-8"))
        return {
            tool: {reason: Reason(**meaning) for reason, meaning in found.items()}
            for tool, found in told.items()
        }
    except (ValueError, TypeError, AttributeError):
        raise ContractBroken(
            f"{SNAPSHOT} cannot be read: restore it, or write it anew with pytest {ACCEPT}"
        ) from None

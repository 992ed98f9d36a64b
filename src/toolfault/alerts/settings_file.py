"""One YAML file of what differs from the shipped alerts; mistakes are told by line and field."""

from __future__ import annotations

import difflib
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import TypeAdapter, ValidationError

from toolfault.alerts.conditions import CONDITIONS
from toolfault.alerts.spec import Alerts, Spec, alert_name, seconds
from toolfault.settings import SettingError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_ADAPTER = TypeAdapter(Spec)
Field = tuple[str | int, ...]


def read(path: Path) -> Spec:
    """The shipped alerts with what the file changes.

    Raises:
        SettingError: the file cannot be used; says which line and field, and what would be accepted.
    """
    try:
        root = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except OSError as missing:
        raise SettingError(f"{path}: {missing.strerror}. Give an alerts' settings file.") from None
    except yaml.MarkedYAMLError as broken:
        raise _no_yaml(path, broken) from None
    except (yaml.YAMLError, UnicodeDecodeError) as broken:
        raise SettingError(f"{path}: this is no YAML: {broken}") from None
    except RecursionError:
        raise SettingError(f"{path}: this is nested too deeply.") from None
    if root is None:
        return Spec()
    try:
        lines = dict(_lines(root, (), str(path)))
    except RecursionError:
        raise SettingError(f"{path}: an anchor of this file leads back to itself.") from None
    return _checked(_validated(_plain(root, path), str(path), lines), str(path), lines)


def schema() -> dict[str, Any]:
    """The JSON schema of the file: every field may be left out."""
    schema = _ADAPTER.json_schema()
    for part in (schema, *schema.get("$defs", {}).values()):
        part.pop("required", None)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Settings of toolfault's alerts",
        **{name: value for name, value in schema.items() if name != "title"},
    }


def _plain(root: yaml.Node, path: Path) -> Any:
    try:
        values = yaml.SafeLoader("").construct_document(root)
    except yaml.MarkedYAMLError as broken:
        raise _no_yaml(path, broken) from None
    if not isinstance(values, dict):
        raise SettingError(f"{path}:1: this must be a mapping such as `alerts:`.")
    return values


def _no_yaml(path: Path, broken: yaml.MarkedYAMLError) -> SettingError:
    mark = broken.problem_mark or broken.context_mark
    line = f":{mark.line + 1}" if mark else ""
    return SettingError(f"{path}{line}: this is no YAML: {broken.problem}.")


def _lines(node: yaml.Node, at: Field, path: str) -> Iterator[tuple[Field, int]]:
    """The line of every field."""
    yield at, node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from _lines(item, (*at, index), path)
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if key.value in seen:
                raise SettingError(
                    f"{path}:{key.start_mark.line + 1}: {_dotted((*at, key.value))} is given twice."
                )
            seen.add(key.value)
            for below, line in _lines(value, (*at, key.value), path):
                yield below, key.start_mark.line + 1 if below == (*at, key.value) else line


def _validated(values: dict[str, Any], path: str, lines: dict[Field, int]) -> Spec:
    try:
        return _ADAPTER.validate_python(_over(_ADAPTER.dump_python(Spec()), values))
    except ValidationError as wrong:
        told = [
            _told(path, lines, error["loc"], error["type"], error["msg"])
            for error in wrong.errors()
        ]
        raise SettingError("\n".join(told)) from None


def _over(usual: Any, given: Any) -> Any:
    """The given values over the usual ones."""
    if not isinstance(usual, dict) or not isinstance(given, dict):
        return given
    merged = {name: _over(usual[name], given[name]) for name in usual if name in given}
    return {**usual, **given, **merged}


def _told(path: str, lines: dict[Field, int], where: Field, kind: str, message: str) -> str:
    field, line = _nearest(lines, where)
    if kind == "unexpected_keyword_argument":
        return f"{path}:{line}: {_dotted(field)} is no setting. {_meant(field)}".rstrip()
    if kind == "string_pattern_mismatch":
        example = "http://localhost:3000" if "://" in message else "5m"
        message = f"this must be written like {example}"
    return f"{path}:{line}: {_dotted(field)}: {message}."


def _nearest(lines: dict[Field, int], where: Field) -> tuple[Field, int]:
    """The deepest field of the file that a mistake is in."""
    while where not in lines:
        where = where[:-1]
    return where, lines[where]


def _dotted(field: Field) -> str:
    return ".".join(map(str, field)) or "the file"


def _meant(field: Field) -> str:
    usual: Any = _ADAPTER.dump_python(Spec())
    for name in field[:-1]:
        usual = usual.get(name, {}) if isinstance(usual, dict) else {}
    near = difflib.get_close_matches(str(field[-1]), [*usual] if isinstance(usual, dict) else [], 1)
    return f"Did you mean {near[0]}?" if near else ""


def _checked(spec: Spec, path: str, lines: dict[Field, int]) -> Spec:
    """What a place may change depends on the alert, and windows on one another."""
    if seconds(spec.windows.short) < 2 * seconds(spec.windows.stretch):
        _refuse(
            path,
            lines,
            ("windows", "stretch"),
            "two of windows.stretch must fit into windows.short",
        )
    known = {one.name: getattr(spec.alerts, one.name) for one in fields(Alerts)}
    for index, place in enumerate(spec.places):
        if not place.where():
            _refuse(path, lines, ("places", index), "name a service, an environment or a tool")
        for key, change in place.alerts.items():
            field: Field = ("places", index, "alerts", key)
            if key not in known:
                near = difflib.get_close_matches(key, known, 1)
                _refuse(path, lines, field, f"no such alert; {_or_known(near)}")
            labels = CONDITIONS[key].labels
            for name in place.where():
                if name not in labels or CONDITIONS[key].base is None:
                    _refuse(path, lines, field, f"{alert_name(key)} is not told apart by {name}")
            for name in change.given():
                if not hasattr(known[key], name):
                    _refuse(path, lines, (*field, name), f"{alert_name(key)} has no such limit")
    return spec


def _or_known(near: list[str]) -> str:
    return f"did you mean {near[0]}?" if near else "see runbooks.md for their names"


def _refuse(path: str, lines: dict[Field, int], field: Field, why: str) -> None:
    where, line = _nearest(lines, field)
    raise SettingError(f"{path}:{line}: {_dotted(where)}: {why}.")

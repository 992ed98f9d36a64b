"""One YAML file of what differs from the shipped alerts; mistakes are told by line and field."""

from __future__ import annotations

import difflib
from dataclasses import fields
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import TypeAdapter, ValidationError

from toolfault.alerts.conditions import CONDITIONS
from toolfault.alerts.mistakes import causes, words
from toolfault.alerts.spec import Alerts, Spec, alert_name, seconds
from toolfault.settings import SettingError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pydantic_core import ErrorDetails

    from toolfault.alerts.overrides import Change, Place
    from toolfault.alerts.spec import Alert

_ADAPTER = TypeAdapter(Spec)
Field = tuple[str | int, ...]
#: Anchors make a few lines endless, or many millions.
_DEEPEST, _MOST_FIELDS = 20, 10_000
_KINDS = {f"tag:yaml.org,2002:{kind}" for kind in ("str", "int", "float", "bool", "null")}


def read(path: Path) -> Spec:
    """The shipped alerts with what the file changes.

    Raises:
        SettingError: the file cannot be used; says which line and field, and what would be accepted.
    """
    try:
        root = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except OSError as missing:
        raise SettingError(
            f"{path} cannot be read ({missing.strerror}). Give an alerts' settings file."
        ) from None
    except yaml.MarkedYAMLError as broken:
        raise _no_yaml(path, broken) from None
    except (yaml.YAMLError, UnicodeDecodeError) as broken:
        raise SettingError(f"{path}: this is no YAML: {broken}") from None
    except RecursionError:
        raise SettingError(f"{path}: this is nested too deeply.") from None
    if root is None:
        return Spec()
    lines = dict(islice(_lines(root, (), str(path)), _MOST_FIELDS))
    if len(lines) == _MOST_FIELDS:
        raise SettingError(f"{path}: this says more than {_MOST_FIELDS:,} things.")
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
    text = (mark and mark.buffer) or ""
    hint = " Put text that begins with # in quotes." if _is_cut(text) else ""
    return SettingError(f"{path}{line}: this is no YAML: {broken.problem}.{hint}")


def _is_cut(text: str) -> bool:
    """Whether a comment begins where a value was to come, as in `{payments: #pay}`."""
    starts = (line.split(" #")[0].rstrip() for line in text.splitlines() if " #" in line)
    return any(
        start.endswith((":", ",", "[", "{")) and ("{" in start or "[" in start) for start in starts
    )


def _lines(node: yaml.Node, at: Field, path: str) -> Iterator[tuple[Field, int]]:
    """The line of every field."""
    line = node.start_mark.line + 1
    if len(at) > _DEEPEST:
        raise SettingError(f"{path}:{line}: this is nested too deeply.")
    if isinstance(node, yaml.ScalarNode) and not _is_plain(node):
        told = "this must be text, a number, or true or false"
        raise SettingError(f"{path}:{line}: {_dotted(at)}: {told}.")
    yield at, line
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from _lines(item, (*at, index), path)
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise SettingError(
                    f"{path}:{key.start_mark.line + 1}: the name of a setting must be text."
                )
            if key.value in seen:
                raise SettingError(
                    f"{path}:{key.start_mark.line + 1}: {_dotted((*at, key.value))} is given twice."
                )
            seen.add(key.value)
            for below, line in _lines(value, (*at, key.value), path):
                yield below, key.start_mark.line + 1 if below == (*at, key.value) else line


def _is_plain(node: yaml.ScalarNode) -> bool:
    """Whether it is a value of a kind that settings have, and written like one."""
    if node.tag not in _KINDS:
        return False
    try:
        yaml.SafeLoader("").construct_object(node)
    except (ValueError, KeyError):  # it says of itself that it is an int, and is none
        return False
    return True


def _validated(values: dict[str, Any], path: str, lines: dict[Field, int]) -> Spec:
    try:
        return _ADAPTER.validate_python(_over(_ADAPTER.dump_python(Spec()), values))
    except ValidationError as wrong:
        told = [_told(path, lines, error) for error in causes(wrong.errors())]
        raise SettingError("\n".join(told)) from None


def _over(usual: Any, given: Any) -> Any:
    """The given values over the usual ones."""
    if not isinstance(usual, dict) or not isinstance(given, dict):
        return given
    merged = {name: _over(usual[name], given[name]) for name in usual if name in given}
    return {**usual, **given, **merged}


def _told(path: str, lines: dict[Field, int], error: ErrorDetails) -> str:
    field, line = _nearest(lines, error["loc"])
    if error["type"] == "unexpected_keyword_argument":
        return f"{path}:{line}: {_dotted(field)} {_no_setting(field)}"
    return f"{path}:{line}: {_dotted(field)}: {words(error, _usual(field))}."


def _nearest(lines: dict[Field, int], where: Field) -> tuple[Field, int]:
    """The deepest field of the file that a mistake is in."""
    while where not in lines:
        where = where[:-1]
    return where, lines[where]


def _dotted(field: Field) -> str:
    """People count from one."""
    names = (f" #{name + 1}" if isinstance(name, int) else f".{name}" for name in field)
    return "".join(names).removeprefix(".").lstrip() or "the file"


def _no_setting(field: Field) -> str:
    name, known = str(field[-1]), _usual(field[:-1])
    if isinstance(known, dict) and name in known:
        return f"cannot differ by place: `{name}` is the same everywhere."
    return f"is no setting. {_did_you_mean(name, known)}".rstrip()


def _did_you_mean(given: str, known: Any) -> str:
    near = difflib.get_close_matches(given, known if isinstance(known, dict) else (), 1)
    return f"Did you mean {near[0]}?" if near else ""


def _usual(field: Field) -> Any:
    """What is shipped there; of an alert in a place, that of the alert."""
    usual: Any = _ADAPTER.dump_python(Spec())
    for name in (field[2:] or field) if field[:1] == ("places",) else field:
        usual = usual.get(name) if isinstance(usual, dict) else None
    return usual


def _checked(spec: Spec, path: str, lines: dict[Field, int]) -> Spec:
    """What a place may change depends on the alert; windows, places and owners on one another."""
    for field, why in _contradictions(spec):
        where, line = _nearest(lines, field)
        told = f"{path}:{line}: {_dotted(where)}: {why}"
        raise SettingError(told if told.endswith("?") else f"{told}.")
    return spec


def _contradictions(spec: Spec) -> Iterator[tuple[Field, str]]:
    yield from _wrong_windows(spec)
    known = {one.name: getattr(spec.alerts, one.name) for one in fields(Alerts)}
    for key, alert in known.items():
        yield from _unknown_owner(spec, ("alerts", key, "owner"), alert.owner)
        yield from _too_many_buckets(spec, ("alerts", key, "buckets"), alert)
    yield from _wrong_baseline(spec)
    yield from _wrong_stack(spec)
    for index, place in enumerate(spec.places):
        yield from _wrong_place(spec, index, place)
        for key in place.alerts:
            yield from _wrong_change(spec, ("places", index, "alerts", key), place, known)


def _wrong_windows(spec: Spec) -> Iterator[tuple[Field, str]]:
    windows = spec.windows
    if seconds(windows.short) < 2 * seconds(windows.stretch):
        yield ("windows", "stretch"), "two of windows.stretch must fit into windows.short"
    if seconds(windows.stretch) < seconds(windows.evaluation):
        yield ("windows", "evaluation"), "windows.evaluation must fit into windows.stretch"
    for shorter, longer in pairwise(("short", "medium", "long")):
        if seconds(getattr(windows, shorter)) >= seconds(getattr(windows, longer)):
            yield ("windows", longer), f"windows.{longer} must be longer than windows.{shorter}"


def _wrong_baseline(spec: Spec) -> Iterator[tuple[Field, str]]:
    days, of = spec.baseline.season_days, spec.baseline.days
    if days > of:
        told = f"baseline.season_days ({days}) must be at most baseline.days ({of})"
        yield ("baseline", "season_days"), told
    if 2 * seconds(spec.baseline.bucket) > seconds(spec.windows.medium):
        yield ("baseline", "bucket"), "two of baseline.bucket must fit into windows.medium"


def _wrong_stack(spec: Spec) -> Iterator[tuple[Field, str]]:
    if 2 * seconds(spec.stack.every) > seconds(spec.windows.near):
        yield ("stack", "every"), "stack.every must be at most half of windows.near"
    for name in ("replicas", "collectors", "alertmanagers"):
        if len({address.partition(":")[0] for address in getattr(spec.stack, name)}) > 1:
            yield ("stack", name), "all must begin with http://, or all with https://"


def _too_many_buckets(
    spec: Spec, field: Field, alert: Alert | Change
) -> Iterator[tuple[Field, str]]:
    """Of an alert that needs something in several stretches: whether its window has so many."""
    key, buckets = str(field[-2]), getattr(alert, "buckets", None)
    stretch, window = {"medium": ("bucket", "medium"), "slow": ("learned", "slow")}.get(
        CONDITIONS[key].window or "", ("bucket", "sustained")
    )
    of, into = getattr(spec.baseline, stretch), getattr(spec.windows, window)
    if buckets and buckets * seconds(of) > seconds(into):
        shipped = buckets == getattr(getattr(Alerts(), key), "buckets", None)
        where = ("windows", window) if shipped else field
        yield where, f"{buckets} of baseline.{stretch} must fit into windows.{window}"


def _wrong_place(spec: Spec, index: int, place: Place) -> Iterator[tuple[Field, str]]:
    field: Field = ("places", index)
    if not place.where():
        yield field, "name a service, an environment or a tool"
    if not place.alerts:
        yield field, "say under `alerts` what is different there"
    for before, other in enumerate(spec.places[:index]):
        if other.where() == place.where():
            yield field, f"this is the same place as places #{before + 1}; write both as one"


def _wrong_change(
    spec: Spec, field: Field, place: Place, known: dict[str, Any]
) -> Iterator[tuple[Field, str]]:
    key = str(field[-1])
    if key not in known:
        meant = _did_you_mean(key, known) or "See runbooks.md for their names"
        yield field, f"there is no such alert. {meant}"
        return
    for name in place.where():
        if name not in CONDITIONS[key].labels or CONDITIONS[key].base is None:
            yield field, f"{alert_name(key)} is not told apart by {name}"
    for name in place.alerts[key].given():
        if not hasattr(known[key], name):
            yield (*field, name), f"{alert_name(key)} has no such limit"
    yield from _unknown_owner(spec, (*field, "owner"), place.alerts[key].owner)
    yield from _too_many_buckets(spec, (*field, "buckets"), place.alerts[key])


def _unknown_owner(spec: Spec, field: Field, owner: str | None) -> Iterator[tuple[Field, str]]:
    """Once owners have channels, one without would be a misspelt one whose alerts go elsewhere."""
    channels = spec.receivers.owner_channels
    if owner and channels and owner not in channels:
        meant = _did_you_mean(owner, channels) or "Give it one"
        yield field, f"{owner} has no channel in receivers.owner_channels. {meant}"

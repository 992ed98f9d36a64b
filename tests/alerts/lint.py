"""The checks of a rule linter that matter here, on the parsed expressions.

Every fault is a sentence. A rule's result labels are worked out from its expression, so that matchers
and vector matching that can never meet are seen without any data.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

import promql_parser as promql

from toolfault import conventions as names

SCRAPE = timedelta(seconds=30)
RETENTION = timedelta(days=15)  # Prometheus' default
_COMPARISONS = frozenset({">", "<", ">=", "<=", "==", "!="})
_SETS = frozenset({"and", "or", "unless"})
_RATES = frozenset({"increase", "rate", "irate"})
_TARGET = frozenset({"job", "instance"})
_PLACE = frozenset({names.LABEL_SERVICE, names.LABEL_ENVIRONMENT})
_TOOL = _PLACE | {names.LABEL_TOOL}
_MODEL = _PLACE | {names.LABEL_MODEL}
#: Labels of what Prometheus scrapes.
SCRAPED: Mapping[str, frozenset[str]] = {
    "up": _TARGET,
    "prometheus_rule_evaluation_failures_total": _TARGET | {"rule_group"},
    names.PARTITIONS_AHEAD: _TARGET,
    names.DEAD_LETTERS_WAITING: _TARGET | _TOOL,
    f"{names.TOOL_CALL_DURATION}_count": _TARGET | _TOOL,
    **{
        f"{metric}_total": _TARGET | labels
        for metric, labels in {
            names.TOOL_CALLS: _TOOL | {names.LABEL_OUTCOME, names.LABEL_CODE},
            names.BUDGET_EXHAUSTED_TOTAL: _TOOL,
            names.GENERIC_ERROR_TOTAL: _TOOL,
            names.BACKSTOP_REACHED_TOTAL: _TOOL,
            names.ERROR_GROUPS_NEW: _TOOL | {names.LABEL_CODE},
            names.UNREGISTERED_TOOL_CALLS: _PLACE,
            names.LATE_CALLS: _PLACE,
            names.TELEMETRY_DROPPED_TOTAL: _PLACE,
            names.RUN_LIMIT_EXCEEDED_TOTAL: _PLACE | {names.LABEL_AGENT},
            names.MODEL_CALLS: _MODEL,
            names.MODEL_ERRORS: _MODEL,
            names.MODEL_RETRIES_EXHAUSTED: _MODEL,
            names.INGEST_REFUSED: frozenset({"signal", "reason"}),
            names.INGEST_REQUESTS: frozenset({"transport", "signal", "status"}),
            names.INGEST_SCRUB_FAULTS: frozenset(),
        }.items()
    },
}


class Recorded(NamedTuple):
    """What a recording rule's series can look like."""

    labels: frozenset[str]
    fixed: list[dict[str, str]]


def faults(files: Mapping[str, Any]) -> list[str]:
    """Every fault of these rule files."""
    rules = [rule for file in files.values() for group in file["groups"] for rule in group["rules"]]
    recorded = _recorded(rules)
    return [
        f"{rule.get('alert') or rule.get('record')}: {fault}"
        for rule in rules
        for fault in (*_expression(rule, recorded), *_alert(rule, recorded))
    ] + [f"{twice}: is defined twice" for twice in _twice(rules)]


def _recorded(rules: list[dict[str, Any]]) -> dict[str, Recorded]:
    """Rules are in an order in which each reads only what was recorded before, or by itself."""
    known: dict[str, Recorded] = {}
    for rule in [*rules, *rules]:  # the second time with what later files record
        if "record" in rule:
            fixed = rule.get("labels", {})
            labels = result(promql.parse(rule["expr"]), known) | fixed.keys()
            old = known.get(rule["record"], Recorded(labels, []))
            known[rule["record"]] = Recorded(labels, [*old.fixed, fixed])
    return known


def result(node: Any, recorded: Mapping[str, Recorded]) -> frozenset[str]:  # noqa: PLR0911 - a case each
    """The labels an expression's result can have."""
    match type(node).__name__:
        case "VectorSelector":
            if node.name in recorded:
                return recorded[node.name].labels
            return SCRAPED.get(node.name, frozenset())
        case "MatrixSelector":
            return result(node.vector_selector, recorded)
        case "ParenExpr" | "SubqueryExpr" | "UnaryExpr":
            return result(node.expr, recorded)
        case "AggregateExpr":
            return _aggregated(node, result(node.expr, recorded))
        case "Call":
            return _called(node, recorded)
        case "BinaryExpr":
            left, right = result(node.lhs, recorded), result(node.rhs, recorded)
            return left if _is_vector(node.lhs) else right
    return frozenset()


def _aggregated(node: Any, labels: frozenset[str]) -> frozenset[str]:
    if node.modifier is None:
        return frozenset()
    named = frozenset(node.modifier.labels)
    return named if str(node.modifier.type).endswith("By") else labels - named


def _called(node: Any, recorded: Mapping[str, Recorded]) -> frozenset[str]:
    if node.func.name in ("absent", "vector", "time"):
        return frozenset()
    vector = next(argument for argument in node.args if _is_vector(argument))
    added = {node.args[1].val} if node.func.name == "label_replace" else frozenset()
    return result(vector, recorded) | added


def _is_vector(node: Any) -> bool:
    match type(node).__name__:
        case "NumberLiteral" | "StringLiteral":
            return False
        case "ParenExpr" | "UnaryExpr":
            return _is_vector(node.expr)
        case "BinaryExpr":
            return _is_vector(node.lhs) or _is_vector(node.rhs)
    return True


def walk(node: Any) -> Iterator[Any]:
    """A node and all nodes in it."""
    yield node
    for name in ("lhs", "rhs", "expr", "vector_selector"):
        if isinstance(below := getattr(node, name, None), promql.Expr):
            yield from walk(below)
    for argument in getattr(node, "args", None) or ():
        yield from walk(argument)


def _expression(rule: dict[str, Any], recorded: Mapping[str, Recorded]) -> Iterator[str]:
    for node in walk(promql.parse(rule["expr"])):
        match type(node).__name__:
            case "VectorSelector":
                yield from _selector(node, recorded)
            case "Call":
                yield from _call(node)
            case "AggregateExpr":
                yield from _aggregate(node, result(node.expr, recorded))
            case "BinaryExpr":
                yield from _binary(node, recorded)
            case "MatrixSelector":
                yield from _range(node)


def _selector(node: Any, recorded: Mapping[str, Recorded]) -> Iterator[str]:
    if node.name not in recorded and node.name not in SCRAPED:
        yield f"nothing records or exposes {node.name}"
        return
    labels = result(node, recorded)
    for matcher in node.matchers.matchers:
        if matcher.name not in labels:
            yield f"{node.name} has no label {matcher.name}"
        if str(matcher.op) in ("MatchOp.Re", "MatchOp.NotRe") and re.fullmatch(
            r"[\w-]*", matcher.value
        ):
            yield f"the regular expression {matcher.value!r} is a plain text"
        yield from _impossible(node.name, matcher, recorded)


def _impossible(name: str, matcher: Any, recorded: Mapping[str, Recorded]) -> Iterator[str]:
    """A series is asked for that no rule writes."""
    values = {
        fixed[matcher.name]
        for fixed in (recorded[name].fixed if name in recorded else ())
        if matcher.name in fixed
    }
    if values and str(matcher.op) == "MatchOp.Equal" and matcher.value not in values:
        yield f"no rule records {name} with {matcher.name}={matcher.value}"


def _call(node: Any) -> Iterator[str]:
    if node.func.name not in _RATES:
        return
    (argument,) = node.args
    if type(argument).__name__ != "MatrixSelector":
        yield f"{node.func.name}() of something computed"
        return
    metric = argument.vector_selector.name
    if not metric.endswith(("_total", "_count", "_sum", "_bucket")):
        yield f"{node.func.name}() of {metric}, which is no counter"
    if argument.range < 4 * SCRAPE:
        yield f"{node.func.name}() over less than four scrapes"


def _aggregate(node: Any, labels: frozenset[str]) -> Iterator[str]:
    kept = _aggregated(node, labels)
    if names.LABEL_SERVICE in kept and names.LABEL_ENVIRONMENT not in kept:
        yield "services are not kept apart by environment"
    if missing := kept - labels:
        yield f"sums by {', '.join(sorted(missing))}, which nothing has"


def _binary(node: Any, recorded: Mapping[str, Recorded]) -> Iterator[str]:
    if not (_is_vector(node.lhs) and _is_vector(node.rhs)) or str(node.op) == "or":
        return
    left, right = result(node.lhs, recorded), result(node.rhs, recorded)
    matching = node.modifier.matching if node.modifier else None
    if matching is None:
        if left != right:
            yield f"sides of {node.op} never match: {sorted(left ^ right)}"
    elif not set(matching.labels) <= left & right:
        yield f"sides of {node.op} are matched on labels they lack"


def _range(node: Any) -> Iterator[str]:
    if node.range + (node.vector_selector.offset or timedelta()) > RETENTION / 1.5:
        yield "looks back nearly as far as Prometheus keeps"


def _alert(rule: dict[str, Any], recorded: Mapping[str, Recorded]) -> Iterator[str]:
    if "alert" not in rule:
        return
    expr = promql.parse(rule["expr"])
    if not any(_is_condition(node) for node in walk(expr)):
        yield "has no condition"
    if any(_is_call(node, "absent") for node in walk(expr)) and "for" not in rule:
        yield "absent() without waiting fires at every restart"
    yield from _templates(rule, result(expr, recorded) | rule["labels"].keys())


def _is_condition(node: Any) -> bool:
    compared = type(node).__name__ == "BinaryExpr" and str(node.op) in _COMPARISONS
    return compared or _is_call(node, "absent") or _is_call(node, "vector")


def _is_call(node: Any, name: str) -> bool:
    return type(node).__name__ == "Call" and node.func.name == name


def _templates(rule: dict[str, Any], labels: frozenset[str]) -> Iterator[str]:
    notes = rule.get("annotations", {})
    for name in ("summary", "description", "runbook_url", "dashboard_url", "lookup_url"):
        if not notes.get(name):
            yield f"has no {name}"
    for text in rule["labels"].values():
        if "$value" in text:
            yield "has its value in a label: every change would be a new alert"
    for text in notes.values():
        for used in re.findall(r"\$labels\.(\w+)", text):
            if used not in labels:
                yield f"speaks of the label {used}, which the result lacks"
        if re.search(r"{{\s*\$value\s*}}", text):
            yield "shows a bare value"


def _twice(rules: list[dict[str, Any]]) -> list[str]:
    keys = [
        (rule.get("alert"), rule.get("record"), *sorted(rule["labels"].items()))
        if "record" in rule and "labels" in rule
        else (rule.get("alert"), rule.get("record"))
        for rule in rules
    ]
    return sorted({str(key[0] or key[1]) for key in keys if keys.count(key) > 1})

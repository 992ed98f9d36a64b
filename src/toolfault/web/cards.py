"""A match: the call behind a reference, with everything that stands around it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from toolfault import conventions as names
from toolfault.taxonomy import Code, Effect, Outcome
from toolfault.web import record, words
from toolfault.web.models import Match, Step, Words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolfault.store.queries import references as queries
    from toolfault.store.queries.references import Call, Reference
    from toolfault.web.known import Known
    from toolfault.web.lookup import Asked
    from toolfault.web.models import IncidentSummary


@dataclass(frozen=True, slots=True)
class Links:
    """Addresses of the reader's own trace and log viewers.

    Placeholders: {trace_id} {span_id} {reference} {service} {start_ms} {end_ms}.
    """

    trace: str | None = None
    log: str | None = None


def make_match(known: Known, asked: Asked) -> Match:
    """Everything known about one call, in words too."""
    if known.call is None:
        return Match(**_outline(known.row), words=_words(known), **_around(known, asked))
    return Match(
        **{**_outline(known.row), **_of_call(known.call, known.attributes)},
        words=_words(known),
        envelope=record.told(known.call, known.attributes),
        attempt_list=record.attempts(known.attributes),
        conversation=tuple(_step(step, known.call) for step in known.conversation),
        **_around(known, asked),
    )


def _outline(row: Reference) -> dict[str, Any]:
    kept = ("service", "environment", "tool", "outcome", "code", "reason", "action", "effect")
    return {
        **{name: getattr(row, name) for name in kept},
        "reference": row.reference_id,
        "attempts": row.attempts,
        "started_at": row.at if row.outcome is not None else None,
        "received_at": row.received_at,
        "trace_id": row.trace_id.hex(),
        "span_id": row.span_id.hex(),
    }


def _of_call(call: Call, attributes: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("run_id", "conversation_id", "agent", "version", "exception_type", "frame")
    return {
        **{name: getattr(call, name) for name in kept},
        "started_at": call.at,
        "possibly_twice": call.possibly_twice,
        "duration": call.duration_us / 1e6,
        "retry_after": record.number(attributes.get(names.RETRY_AFTER)),
        "field": record.text(attributes.get(names.FIELD)),
        "tool_call_id": record.text(attributes.get(names.TOOL_CALL_ID)),
        "model": record.text(attributes.get(names.REQUEST_MODEL)),
        "budget_failures": record.whole(attributes.get(names.BUDGET_FAILURES)),
        "budget_limit": record.whole(attributes.get(names.BUDGET_LIMIT)),
    }


def _around(known: Known, asked: Asked) -> dict[str, Any]:
    declared = known.declared
    return {
        "writes": record.boolean(declared.get(names.WRITES)),
        "idempotent": record.boolean(declared.get(names.IDEMPOTENT)),
        "runbook": record.web_address(declared.get(names.RUNBOOK)),
        "group": known.group,
        "incident": known.incident,
        "exceptions": tuple(map(record.exception, filter(record.is_exception, known.logs))),
        "log_lines": tuple(
            record.log_line(log) for log in known.logs if not record.is_exception(log)
        ),
        "detail_withheld": not asked.viewer.detail,
        "trace_url": _link(asked.links.trace, known) if any(known.row.trace_id) else None,
        "log_url": _link(asked.links.log, known),
    }


def _words(known: Known) -> Words:
    facts = _facts(known)
    effect, how = words.effect(facts)
    owner, contact = words.owner(facts)
    incident, detail = _incident_words(known, facts)
    tell, source = words.tell_user(facts)
    return Words(
        title=words.title(facts),
        summary=words.summary(facts),
        effect=effect,
        effect_how=how,
        incident=incident,
        incident_detail=detail,
        owner=owner,
        owner_detail=contact,
        tell_user=tell,
        tell_user_from=source,
    )


def _facts(known: Known) -> words.Facts:
    row, call, declared = known.row, known.call, known.declared
    return words.Facts(
        reference=row.reference_id,
        tool=row.tool,
        outcome=record.member(Outcome, row.outcome),
        code=record.member(Code, row.code),
        effect=record.member(Effect, row.effect),
        attempts=row.attempts,
        possibly_twice=bool(call and call.possibly_twice),
        transient=bool(call and call.transient),
        reason=row.reason,
        evidence=record.text(known.attributes.get(names.EVIDENCE)),
        user_message=record.text(known.attributes.get(names.USER_MESSAGE)),
        writes=record.boolean(declared.get(names.WRITES)),
        owner=record.text(declared.get(names.OWNER)),
        owner_contact=record.text(declared.get(names.OWNER_CONTACT)),
        is_declared=known.tool is not None,
        reasons=record.declared_reasons(declared),
    )


def _lasts(incident: IncidentSummary) -> str:
    since = f"{incident.since:%H:%M} UTC on {incident.since:%-d %B}"
    if incident.until is None:
        return f"Open since {since}."
    if incident.until - incident.since < timedelta(minutes=1):
        return f"It began at {since} and lasted less than a minute."
    is_one_day = incident.since.date() == incident.until.date()
    day = "" if is_one_day else f" UTC on {incident.until:%-d %B}"
    return f"It began at {since} and ended at {incident.until:%H:%M}{day}."


def _incident_words(known: Known, facts: words.Facts) -> tuple[str, str]:
    if known.incident is not None:
        return f"Yes: {known.incident.name}", _lasts(known.incident)
    if facts.outcome is Outcome.DECLINED:
        return "No", "An answer of the tool is not an incident."
    if known.group is None:
        return words.NOT_KNOWN, "No group of like calls is stored for it."
    group = known.group
    if group.first_seen == group.last_seen:
        return "No alert is open", "It is the only call of its kind so far."
    count = (
        f"{group.calls_last_day:,} calls like this one in the last 24 hours, "
        f"{group.calls_last_hour:,} in the last hour"
    )
    state = {
        "open": "Nobody has closed it.",
        "resolved": "It was resolved.",
        "muted": "It is muted.",
    }
    return "No alert is open", f"{count}. {state.get(group.status, '')}".strip()


def _step(step: queries.Step, call: Call) -> Step:
    return Step(
        at=step.started_at,
        service=step.service,
        tool=step.tool,
        outcome=step.outcome,
        code=step.code,
        reason=step.reason,
        action=step.action,
        effect=step.effect,
        reference=step.reference_id,
        this_call=(step.trace_id, step.span_id) == (call.trace_id, call.span_id),
    )


def _link(template: str | None, known: Known) -> str | None:
    if template is None:
        return None
    row = known.row
    at = row.at
    end = at + timedelta(microseconds=known.call.duration_us if known.call else 0)
    values = {
        "trace_id": row.trace_id.hex(),
        "span_id": row.span_id.hex(),
        "reference": row.reference_id,
        "service": row.service or "",
        "start_ms": str(int((at - timedelta(minutes=5)).timestamp() * 1000)),
        "end_ms": str(int((end + timedelta(minutes=5)).timestamp() * 1000)),
    }
    for name, value in values.items():
        template = template.replace("{" + name + "}", quote(value, safe=""))
    return template

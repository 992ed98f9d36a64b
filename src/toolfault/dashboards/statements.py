"""SQL for the chosen environments, services and tools. Rows are found by when they were received."""

from __future__ import annotations

from toolfault import conventions as names

#: A running process declares its tools every hour: a version not heard of for longer had stopped.
_QUIET = "2 hours"

# An empty ARRAY is SQL, an empty IN () is not: before the first call there is nothing to choose.
_PLACE = "service = ANY (ARRAY[${service:sqlstring}]::text[]) AND environment = ANY (ARRAY[${environment:sqlstring}]::text[])"
# Metrics count tools nobody declared under one label, and past the cap everything under another.
_CHOSEN = """(@place AND tool = ANY (ARRAY[${tool:sqlstring}]::text[])
    OR (@place AND '@undeclared' = ANY (ARRAY[${tool:sqlstring}]::text[]) OR '@other' = ANY (ARRAY[${tool:sqlstring}]::text[]))
    AND (service, environment, tool) NOT IN (SELECT service, environment, value FROM label WHERE kind = 'tool'))"""
_VERSIONS = """SELECT min(received_at) AS at, service, environment, version FROM run_event
    WHERE event_name = '@declared' AND version IS NOT NULL AND @place
    AND received_at BETWEEN $__timeFrom()::timestamptz - interval '@quiet' AND $__timeTo()
    GROUP BY service, environment, version HAVING min(received_at) >= $__timeFrom()"""
#: Filled in this order: a word may hold those after it.
_WORDS = {
    "@versions": _VERSIONS,
    "@chosen": _CHOSEN,
    "@place": _PLACE,
    "@undeclared": names.UNDECLARED,
    "@other": names.OTHER,
    "@declared": names.TOOL_DECLARED,
    "@quiet": _QUIET,
}


def _filled(text: str) -> str:
    for word, meaning in _WORDS.items():
        text = text.replace(word, meaning)
    return text.strip()


VERSIONS_STARTED = _filled("""
SELECT at AS time, service || ' ' || version AS text, environment AS tags FROM (@versions) started
ORDER BY at""")

COUNT_OF_VERSIONS = _filled("""
SELECT count(*) AS versions FROM (@versions) started""")

WHAT_CHANGED = _filled("""
SELECT at, what, service, environment, tool, detail, reference FROM (
    SELECT at, 'version started' AS what, service, environment, NULL AS tool, version AS detail,
        NULL AS reference
    FROM (@versions) started
    UNION ALL
    SELECT first_seen, 'new error group', service, environment, tool,
        concat_ws(' ', code, coalesce(exception_type, reason), frame), sample_reference_id
    FROM error_group WHERE $__timeFilter(first_seen) AND @chosen
    UNION ALL
    SELECT status_at, 'error group ' || status, service, environment, tool,
        concat_ws(' ', code, coalesce(exception_type, reason), frame), sample_reference_id
    FROM error_group WHERE $__timeFilter(status_at) AND @chosen
    UNION ALL
    SELECT first_seen, 'tool declared first', service, environment, tool, versions[1], NULL
    FROM tool_catalog WHERE $__timeFilter(first_seen) AND @chosen
) changes ORDER BY at DESC LIMIT 100""")

COUNT_OF_NEW_GROUPS = _filled("""
SELECT count(*) AS groups FROM error_group WHERE $__timeFilter(first_seen) AND @chosen""")

NEW_GROUPS = _filled("""
SELECT first_seen, code, coalesce(exception_type, reason) AS cause, tool, service, environment, frame, status,
    (SELECT sum(calls)::bigint FROM error_group_tally tally WHERE tally.fingerprint = error_group.fingerprint)
        AS calls,
    sample_reference_id AS reference, encode(fingerprint, 'hex') AS "group"
FROM error_group WHERE $__timeFilter(first_seen) AND @chosen ORDER BY first_seen DESC LIMIT 100""")

ANSWERS_BY_REASON = _filled("""
SELECT outcome, reason, tool, service, environment, count(*) AS calls, max(received_at) AS latest
FROM tool_call WHERE outcome IN ('declined', 'refused') AND $__timeFilter(received_at) AND @chosen
GROUP BY outcome, reason, tool, service, environment ORDER BY calls DESC LIMIT 100""")

REASONS = _filled("""
SELECT outcome, code, reason, effect, tool, service, environment, count(*) AS calls, max(received_at) AS latest
FROM tool_call WHERE outcome <> 'cancelled' AND $__timeFilter(received_at) AND @chosen
GROUP BY outcome, code, reason, effect, tool, service, environment ORDER BY calls DESC LIMIT 100""")

REFERENCES = _filled("""
SELECT received_at AS at, reference_id AS reference, outcome, code, reason, effect, attempts, message, tool,
    service, environment, version
FROM tool_call WHERE reference_id IS NOT NULL AND $__timeFilter(received_at) AND @chosen
ORDER BY received_at DESC LIMIT 100""")

COUNT_OF_UNKNOWN_EFFECTS = _filled("""
SELECT count(*) AS calls FROM tool_call
WHERE (effect = 'unknown' OR possibly_twice) AND outcome <> 'cancelled' AND $__timeFilter(received_at) AND @chosen""")

UNKNOWN_EFFECTS = _filled("""
SELECT received_at AS at, reference_id AS reference, outcome, code, reason, effect, possibly_twice, attempts, tool,
    service, environment
FROM tool_call
WHERE (effect = 'unknown' OR possibly_twice) AND outcome <> 'cancelled' AND $__timeFilter(received_at) AND @chosen
ORDER BY received_at DESC LIMIT 100""")

VERSIONS = _filled("""
SELECT coalesce(version, 'not told') AS version, service, environment,
    count(*) FILTER (WHERE outcome IN ('failed', 'timed_out')) AS errors,
    count(*) FILTER (WHERE code = 'INTERNAL') AS internal, count(DISTINCT fingerprint) AS groups,
    min(received_at) AS first, max(received_at) AS latest
FROM tool_call WHERE $__timeFilter(received_at) AND @chosen
GROUP BY coalesce(version, 'not told'), service, environment ORDER BY latest DESC LIMIT 100""")

INCIDENTS = _filled("""
SELECT started_at, ended_at, name, labels ->> 'severity' AS severity, labels ->> 'service' AS service,
    labels ->> 'environment' AS environment, labels ->> 'tool' AS tool, annotations ->> 'summary' AS summary,
    annotations ->> 'runbook_url' AS runbook, annotations ->> 'lookup_url' AS lookup
FROM incident
WHERE started_at <= $__timeTo() AND (ended_at IS NULL OR ended_at >= $__timeFrom())
    AND (labels ->> 'service' IS NULL OR labels ->> 'service' = ANY (ARRAY[${service:sqlstring}]::text[]))
    AND (labels ->> 'environment' IS NULL OR labels ->> 'environment' = ANY (ARRAY[${environment:sqlstring}]::text[]))
    AND (labels ->> 'tool' IS NULL OR labels ->> 'tool' = ANY (ARRAY[${tool:sqlstring}]::text[]))
ORDER BY started_at DESC LIMIT 100""")

SERVICES = _filled("""
SELECT service, environment, count(*) AS tools, max(last_seen) AS latest
FROM tool_catalog WHERE @place GROUP BY service, environment ORDER BY latest LIMIT 200""")

"""Tables with a row per record, and the references that lead to them. All are distributed."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Column, Date, Index, PrimaryKeyConstraint, Table

from toolfault.store.models import columns as c
from toolfault.store.models.columns import METADATA

# Every outcome but ok: 30 days.
TOOL_CALL = Table(
    "tool_call",
    METADATA,
    c.time("started_at"),
    c.time("told_at", null=True),
    c.time("received_at"),
    c.big("duration_us"),
    c.small("attempts"),
    c.flag("possibly_twice"),
    c.flag("transient"),
    c.binary("trace_id"),
    c.binary("span_id"),
    c.binary("parent_span_id", null=True),
    c.name("service"),
    c.name("environment"),
    c.name("tool"),
    c.name("outcome"),
    c.name("code", null=True),  # null for cancelled
    c.name("reason", null=True),
    c.name("action"),
    c.name("effect"),
    c.name("reference_id", null=True),
    c.name("run_id", null=True),
    c.name("conversation_id", null=True),
    c.name("agent", null=True),
    c.name("version", null=True),
    c.name("exception_type", null=True),
    c.name("frame", null=True),
    c.binary("fingerprint", null=True),
    c.prose("message"),  # what the model was told
    c.json("attributes"),  # the rest of the record, the attempt list
    PrimaryKeyConstraint("trace_id", "span_id", "started_at"),
    c.ids_check("tool_call"),
    CheckConstraint(
        "outcome <> 'ok' AND (outcome = 'cancelled') = (code IS NULL)",
        name="tool_call_outcome_check",
    ),
    c.told_index("tool_call"),
    Index("tool_call_received_idx", "received_at"),
    c.partial_index("tool_call_error_idx", "tool", "code", "received_at", where="code"),
    c.partial_index("tool_call_group_idx", "fingerprint", "received_at", where="fingerprint"),
    c.partial_index(
        "tool_call_conversation_idx", "conversation_id", "started_at", where="conversation_id"
    ),
    postgresql_partition_by="RANGE (started_at)",
)

# Only what an ok call has, and apart because it is dropped after 3 days.
TOOL_CALL_OK = Table(
    "tool_call_ok",
    METADATA,
    c.time("started_at"),
    c.time("told_at", null=True),
    c.time("received_at"),
    c.big("duration_us"),
    c.small("attempts"),
    c.flag("possibly_twice"),
    c.binary("trace_id"),
    c.binary("span_id"),
    c.binary("parent_span_id", null=True),
    c.name("service"),
    c.name("environment"),
    c.name("tool"),
    c.name("effect"),
    c.name("run_id", null=True),
    c.name("conversation_id", null=True),
    c.name("agent", null=True),
    c.name("version", null=True),
    c.json("attributes"),
    PrimaryKeyConstraint("trace_id", "span_id", "started_at"),
    c.ids_check("tool_call_ok"),
    c.told_index("tool_call_ok"),
    c.block_index("tool_call_ok_received_idx", "received_at"),
    c.partial_index(
        "tool_call_ok_conversation_idx", "conversation_id", "started_at", where="conversation_id"
    ),
    postgresql_partition_by="RANGE (started_at)",
)

# Events that are not a call.
RUN_EVENT = Table(
    "run_event",
    METADATA,
    c.time("occurred_at"),
    c.time("told_at", null=True),
    c.time("received_at"),
    c.big("amount", null=True),  # attempts of a model step, records dropped
    c.small("severity"),
    c.binary("trace_id"),
    c.binary("span_id"),
    c.binary("digest"),  # 8 bytes over name, original time, ids, body and attributes
    c.name("event_name"),
    c.name("service"),
    c.name("environment"),
    c.name("label", null=True),  # tool, agent or model, as the event's metric wants
    c.name("outcome", null=True),  # of a model step: ok, error, exhausted
    c.name("reference_id", null=True),
    c.name("run_id", null=True),
    c.name("conversation_id", null=True),
    c.name("version", null=True),
    c.json("attributes"),
    PrimaryKeyConstraint("trace_id", "span_id", "occurred_at", "digest"),
    c.told_index("run_event"),
    Index("run_event_name_idx", "event_name", "received_at"),
    c.partial_index(
        "run_event_conversation_idx", "conversation_id", "occurred_at", where="conversation_id"
    ),
    postgresql_partition_by="RANGE (occurred_at)",
)

# Exception detail, black box, stamped application records.
LOG_RECORD = Table(
    "log_record",
    METADATA,
    c.time("occurred_at"),  # time, else observed time, never the arrival
    c.time("told_at", null=True),
    c.time("received_at"),
    c.small("severity"),
    c.binary("trace_id"),
    c.binary("span_id"),
    c.binary("digest"),
    c.name("event_name", null=True),  # toolfault.exception, toolfault.log or none
    c.name("service"),
    c.name("environment"),
    c.name("reference_id", null=True),
    c.name("exception_type", null=True),
    c.prose("body"),
    c.prose("stacktrace"),
    c.json("attributes"),
    PrimaryKeyConstraint("trace_id", "span_id", "occurred_at", "digest"),
    c.told_index("log_record"),
    c.block_index("log_record_received_idx", "received_at"),
    postgresql_partition_by="RANGE (occurred_at)",
)

# Where a reference is, and its outline: 400 days. A row without outcome holds only a part of a call.
REFERENCE = Table(
    "reference",
    METADATA,
    c.time("started_at", null=True),  # the key time of the call: names its partition
    c.time("received_at"),
    Column("day", Date, nullable=False),
    c.small("attempts", null=True),
    c.name("reference_id"),
    c.binary("trace_id"),
    c.binary("span_id"),
    c.name("service", null=True),
    c.name("environment", null=True),
    c.name("tool", null=True),
    c.name("outcome", null=True),
    c.name("code", null=True),
    c.name("reason", null=True),
    c.name("action", null=True),
    c.name("effect", null=True),
    c.binary("fingerprint", null=True),
    PrimaryKeyConstraint("reference_id", "trace_id", "span_id", "day"),
    postgresql_partition_by="RANGE (day)",
)

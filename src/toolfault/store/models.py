"""The tables. The migrations make exactly these; a test compares the two.

The same tables work on plain PostgreSQL and distributed by Citus: every key holds the column a
table is distributed and partitioned by, and there is no foreign key, identity, trigger or volatile
default. Columns of eight bytes come first, then smaller ones, then those of variable length.

A key time is the record's own, nanoseconds cut to microseconds. Where no partition has it, the key
time is `UNDATED` and `told_at` keeps the original. `trace_id` and `span_id` are zero bytes where a
record has none.
"""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Date,
    DateTime,
    Index,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

METADATA = MetaData()
UNDATED = datetime(1900, 1, 1, tzinfo=UTC)
#: Partitions are kept out of the models: they come and go by age.
PARTITION_NAME = r"_(undated|\d{6}|\d{8})$"

#: Tables with a row per record, one partition a day.
DAILY = ("tool_call_ok", "tool_call", "run_event", "log_record")
MONTHLY = ("reference", "call_tally")


def _time(name: str, *, null: bool = False) -> Column[datetime]:
    return Column(name, DateTime(timezone=True), nullable=null)


def _big(name: str, *, null: bool = False) -> Column[int]:
    return Column(name, BigInteger, nullable=null)


def _small(name: str, *, null: bool = False) -> Column[int]:
    return Column(name, SmallInteger, nullable=null)


def _flag(name: str) -> Column[bool]:
    return Column(name, Boolean, nullable=False)


def _bytes(name: str, *, null: bool = False) -> Column[bytes]:
    return Column(name, LargeBinary, nullable=null)


def _id(name: str, *, null: bool = False, default: str | None = None) -> Column[str]:
    """A name, id or code: compared byte by byte."""
    return Column(name, Text(collation="C"), nullable=null, server_default=default)


def _prose(name: str, *, null: bool = True) -> Column[str]:
    return Column(name, Text, nullable=null)


def _json(name: str, *, null: bool = True) -> Column[object]:
    return Column(name, JSONB, nullable=null)


def _told_index(table: str) -> Index:
    """Finds a record that came before its time had a partition."""
    return Index(f"{table}_told_idx", "told_at", postgresql_where=text("told_at IS NOT NULL"))


def _partial_index(name: str, *columns: str, where: str) -> Index:
    return Index(name, *columns, postgresql_where=text(f"{where} IS NOT NULL"))


def _block_index(name: str, column: str) -> Index:
    """24 kB a day where a B-tree takes 3.7 MB; rows arrive in this order."""
    return Index(name, column, postgresql_using="brin", postgresql_with={"pages_per_range": 32})


def _ids_check(table: str) -> CheckConstraint:
    return CheckConstraint(
        "octet_length(trace_id) = 16 AND octet_length(span_id) = 8", name=f"{table}_ids_check"
    )


# Every outcome but ok: 30 days.
TOOL_CALL = Table(
    "tool_call",
    METADATA,
    _time("started_at"),
    _time("told_at", null=True),
    _time("received_at"),
    _big("duration_us"),
    _small("attempts"),
    _flag("possibly_twice"),
    _flag("transient"),
    _bytes("trace_id"),
    _bytes("span_id"),
    _bytes("parent_span_id", null=True),
    _id("service"),
    _id("environment"),
    _id("tool"),
    _id("outcome"),
    _id("code", null=True),  # null for cancelled
    _id("reason", null=True),
    _id("action"),
    _id("effect"),
    _id("reference_id", null=True),
    _id("run_id", null=True),
    _id("conversation_id", null=True),
    _id("agent", null=True),
    _id("version", null=True),
    _id("exception_type", null=True),
    _id("frame", null=True),
    _bytes("fingerprint", null=True),
    _prose("message"),  # what the model was told
    _json("attributes"),  # the rest of the record, the attempt list
    PrimaryKeyConstraint("trace_id", "span_id", "started_at"),
    _ids_check("tool_call"),
    CheckConstraint(
        "outcome <> 'ok' AND (outcome = 'cancelled') = (code IS NULL)",
        name="tool_call_outcome_check",
    ),
    _told_index("tool_call"),
    Index("tool_call_received_idx", "received_at"),
    _partial_index("tool_call_error_idx", "tool", "code", "received_at", where="code"),
    _partial_index("tool_call_group_idx", "fingerprint", "received_at", where="fingerprint"),
    _partial_index(
        "tool_call_conversation_idx", "conversation_id", "started_at", where="conversation_id"
    ),
    postgresql_partition_by="RANGE (started_at)",
)

# Only what an ok call has, and apart because it is dropped after 3 days.
TOOL_CALL_OK = Table(
    "tool_call_ok",
    METADATA,
    _time("started_at"),
    _time("told_at", null=True),
    _time("received_at"),
    _big("duration_us"),
    _small("attempts"),
    _flag("possibly_twice"),
    _bytes("trace_id"),
    _bytes("span_id"),
    _bytes("parent_span_id", null=True),
    _id("service"),
    _id("environment"),
    _id("tool"),
    _id("effect"),
    _id("run_id", null=True),
    _id("conversation_id", null=True),
    _id("agent", null=True),
    _id("version", null=True),
    _json("attributes"),
    PrimaryKeyConstraint("trace_id", "span_id", "started_at"),
    _ids_check("tool_call_ok"),
    _told_index("tool_call_ok"),
    _block_index("tool_call_ok_received_idx", "received_at"),
    _partial_index(
        "tool_call_ok_conversation_idx", "conversation_id", "started_at", where="conversation_id"
    ),
    postgresql_partition_by="RANGE (started_at)",
)

# Events that are not a call.
RUN_EVENT = Table(
    "run_event",
    METADATA,
    _time("occurred_at"),
    _time("told_at", null=True),
    _time("received_at"),
    _big("amount", null=True),  # attempts of a model step, records dropped
    _small("severity"),
    _bytes("trace_id"),
    _bytes("span_id"),
    _bytes("digest"),  # 8 bytes over name, original time, ids, body and attributes
    _id("event_name"),
    _id("service"),
    _id("environment"),
    _id("label", null=True),  # tool, agent or model, as the event's metric wants
    _id("outcome", null=True),  # of a model step: ok, error, exhausted
    _id("reference_id", null=True),
    _id("run_id", null=True),
    _id("conversation_id", null=True),
    _id("version", null=True),
    _json("attributes"),
    PrimaryKeyConstraint("trace_id", "span_id", "occurred_at", "digest"),
    _told_index("run_event"),
    Index("run_event_name_idx", "event_name", "received_at"),
    _partial_index(
        "run_event_conversation_idx", "conversation_id", "occurred_at", where="conversation_id"
    ),
    postgresql_partition_by="RANGE (occurred_at)",
)

# Exception detail, black box, stamped application records.
LOG_RECORD = Table(
    "log_record",
    METADATA,
    _time("occurred_at"),  # time, else observed time, never the arrival
    _time("told_at", null=True),
    _time("received_at"),
    _small("severity"),
    _bytes("trace_id"),
    _bytes("span_id"),
    _bytes("digest"),
    _id("event_name", null=True),  # toolfault.exception, toolfault.log or none
    _id("service"),
    _id("environment"),
    _id("reference_id", null=True),
    _id("exception_type", null=True),
    _prose("body"),
    _prose("stacktrace"),
    _json("attributes"),
    PrimaryKeyConstraint("trace_id", "span_id", "occurred_at", "digest"),
    _told_index("log_record"),
    _block_index("log_record_received_idx", "received_at"),
    postgresql_partition_by="RANGE (occurred_at)",
)

# Where a reference is, and its outline: 400 days. A row without outcome holds only a part of a call.
REFERENCE = Table(
    "reference",
    METADATA,
    _time("started_at", null=True),  # the key time of the call: names its partition
    _time("received_at"),
    Column("day", Date, nullable=False),
    _small("attempts", null=True),
    _id("reference_id"),
    _bytes("trace_id"),
    _bytes("span_id"),
    _id("service", null=True),
    _id("environment", null=True),
    _id("tool", null=True),
    _id("outcome", null=True),
    _id("code", null=True),
    _id("reason", null=True),
    _id("action", null=True),
    _id("effect", null=True),
    _bytes("fingerprint", null=True),
    PrimaryKeyConstraint("reference_id", "trace_id", "span_id", "day"),
    postgresql_partition_by="RANGE (day)",
)

# What people say about a group of errors.
ERROR_GROUP = Table(
    "error_group",
    METADATA,
    _time("first_seen"),
    _time("status_at", null=True),
    _bytes("fingerprint"),
    _id("service"),
    _id("environment"),  # of the first occurrence
    _id("tool"),
    _id("code"),
    _id("reason", null=True),
    _id("exception_type", null=True),
    _id("frame", null=True),
    _id("sample_reference_id", null=True),
    _id("status", default="open"),  # open, resolved, muted
    # A version that is not in here reopens a resolved group.
    Column("versions", ARRAY(Text), nullable=False, server_default="{}"),
    PrimaryKeyConstraint("fingerprint"),
)

ERROR_GROUP_TALLY = Table(
    "error_group_tally",
    METADATA,
    _time("hour"),
    _big("calls"),
    _time("last_seen"),
    _small("slot"),
    _bytes("fingerprint"),
    PrimaryKeyConstraint("fingerprint", "hour", "slot"),
    postgresql_with={"fillfactor": 60},
)

# From here on undistributed. A writer touches only the rows of its own slot; readers sum over slots.

# What /metrics/tools shows; rises only.
CALL_TOTAL = Table(
    "call_total",
    METADATA,
    _big("calls"),
    _big("duration_us"),
    _big("attempts"),
    _time("exemplar_at", null=True),
    _small("slot"),
    _id("service"),
    _id("environment"),
    _id("tool"),
    _id("outcome"),
    _id("code"),  # OK, CANCELLED where there is none
    _id("exemplar_reference", null=True),
    _bytes("exemplar_trace", null=True),
    Column(
        "duration_buckets", ARRAY(BigInteger), nullable=False
    ),  # not cumulative, the last is +Inf
    Column("attempts_buckets", ARRAY(BigInteger), nullable=False),
    PrimaryKeyConstraint("service", "environment", "tool", "outcome", "code", "slot"),
    postgresql_with={"fillfactor": 50},
)

# The usual level of a tool, trends: 400 days.
CALL_TALLY = Table(
    "call_tally",
    METADATA,
    _time("hour"),
    _big("calls"),
    _small("slot"),
    _id("service"),
    _id("environment"),
    _id("tool"),
    _id("outcome"),
    _id("code"),
    PrimaryKeyConstraint("service", "environment", "tool", "outcome", "code", "hour", "slot"),
    postgresql_partition_by="RANGE (hour)",
)

EVENT_TOTAL = Table(
    "event_total",
    METADATA,
    _big("amount"),
    _small("slot"),
    _id("metric"),
    _id("service"),
    _id("environment"),
    _id("label"),  # empty where the metric has none; `tool CODE` for new error groups
    PrimaryKeyConstraint("metric", "service", "environment", "label", "slot"),
    postgresql_with={"fillfactor": 60},
)

# What may be a label of a metric.
LABEL = Table(
    "label",
    METADATA,
    _id("kind"),  # tool, model, agent, service
    _id("service"),
    _id("environment"),
    _id("value"),
    PrimaryKeyConstraint("kind", "service", "environment", "value"),
)

TOOL_CATALOG = Table(
    "tool_catalog",
    METADATA,
    _time("first_seen"),
    _time("last_seen"),
    _id("service"),
    _id("environment"),
    _id("tool"),
    Column("versions", ARRAY(Text), nullable=False),
    _json("declared"),  # writes, idempotent, reasons, owner, owner_contact, runbook
    PrimaryKeyConstraint("service", "environment", "tool"),
)

DEAD_LETTER = Table(
    "dead_letter",
    METADATA,
    _time("occurred_at"),
    _time("acked_at", null=True),
    _prose("acked_by"),
    _bytes("id"),  # hash of the run event's key
    _bytes("trace_id"),
    _id("service"),
    _id("environment"),
    _id("tool", null=True),
    _id("reference_id", null=True),
    _json("attributes"),
    PrimaryKeyConstraint("id"),
)

INCIDENT = Table(
    "incident",
    METADATA,
    _time("started_at"),
    _time("ended_at", null=True),
    _id("alert_id"),  # Alertmanager's fingerprint
    _id("name"),
    _json("labels", null=False),
    _json("annotations", null=False),
    PrimaryKeyConstraint("alert_id", "started_at"),
)

API_TOKEN = Table(
    "api_token",
    METADATA,
    _time("created_at"),
    _time("revoked_at", null=True),
    Column("id", Uuid, nullable=False),
    _prose("name", null=False),
    _bytes("secret"),  # hash
    Column("roles", ARRAY(Text), nullable=False),
    Column("services", ARRAY(Text), nullable=True),  # null: all
    PrimaryKeyConstraint("id"),
    UniqueConstraint("secret"),
)

LOOKUP_AUDIT = Table(
    "lookup_audit",
    METADATA,
    _time("looked_at"),
    Column("id", Uuid, nullable=False),
    Column("token_id", Uuid, nullable=True),
    _prose("asked", null=False),
    _id("state"),
    PrimaryKeyConstraint("id"),
    Index("lookup_audit_time_idx", "looked_at"),
)

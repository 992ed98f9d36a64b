"""Groups, totals, labels and the small tables around them."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
)
from sqlalchemy.dialects.postgresql import ARRAY

from toolfault.store.models import columns as c
from toolfault.store.models.columns import METADATA

# What people say about a group of errors.
ERROR_GROUP = Table(
    "error_group",
    METADATA,
    c.time("first_seen"),
    c.time("status_at", null=True),
    c.binary("fingerprint"),
    c.name("service"),
    c.name("environment"),  # of the first occurrence
    c.name("tool"),
    c.name("code"),
    c.name("reason", null=True),
    c.name("exception_type", null=True),
    c.name("frame", null=True),
    c.name("sample_reference_id", null=True),
    c.name("status", default="open"),  # open, resolved, muted
    # A version that is not in here reopens a resolved group.
    Column("versions", ARRAY(Text), nullable=False, server_default="{}"),
    PrimaryKeyConstraint("fingerprint"),
)

ERROR_GROUP_TALLY = Table(
    "error_group_tally",
    METADATA,
    c.time("hour"),
    c.big("calls"),
    c.time("last_seen"),
    c.small("slot"),
    c.binary("fingerprint"),
    PrimaryKeyConstraint("fingerprint", "hour", "slot"),
    postgresql_with={"fillfactor": 60},
)

# From here on undistributed. A writer touches only the rows of its own slot; readers sum over slots.

# What /metrics/tools shows; rises only.
CALL_TOTAL = Table(
    "call_total",
    METADATA,
    c.big("calls"),
    c.big("duration_us"),
    c.big("attempts"),
    c.time("exemplar_at", null=True),
    c.small("slot"),
    c.name("service"),
    c.name("environment"),
    c.name("tool"),
    c.name("outcome"),
    c.name("code"),  # OK, CANCELLED where there is none
    c.name("exemplar_reference", null=True),
    c.binary("exemplar_trace", null=True),
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
    c.time("hour"),
    c.big("calls"),
    c.small("slot"),
    c.name("service"),
    c.name("environment"),
    c.name("tool"),
    c.name("outcome"),
    c.name("code"),
    PrimaryKeyConstraint("service", "environment", "tool", "outcome", "code", "hour", "slot"),
    postgresql_partition_by="RANGE (hour)",
)

EVENT_TOTAL = Table(
    "event_total",
    METADATA,
    c.big("amount"),
    c.small("slot"),
    c.name("metric"),
    c.name("service"),
    c.name("environment"),
    c.name("label"),  # empty where the metric has none; `tool CODE` for new error groups
    PrimaryKeyConstraint("metric", "service", "environment", "label", "slot"),
    postgresql_with={"fillfactor": 60},
)

# What may be a label of a metric.
LABEL = Table(
    "label",
    METADATA,
    c.name("kind"),  # tool, model, agent, service
    c.name("service"),
    c.name("environment"),
    c.name("value"),
    PrimaryKeyConstraint("kind", "service", "environment", "value"),
)

TOOL_CATALOG = Table(
    "tool_catalog",
    METADATA,
    c.time("first_seen"),
    c.time("last_seen"),
    c.name("service"),
    c.name("environment"),
    c.name("tool"),
    Column("versions", ARRAY(Text), nullable=False),
    c.json("declared"),  # writes, idempotent, reasons, owner, owner_contact, runbook
    PrimaryKeyConstraint("service", "environment", "tool"),
)

DEAD_LETTER = Table(
    "dead_letter",
    METADATA,
    c.time("occurred_at"),
    c.time("acked_at", null=True),
    c.prose("acked_by"),
    c.binary("id"),  # hash of the run event's key
    c.binary("trace_id"),
    c.name("service"),
    c.name("environment"),
    c.name("tool", null=True),
    c.name("reference_id", null=True),
    c.json("attributes"),
    PrimaryKeyConstraint("id"),
)

INCIDENT = Table(
    "incident",
    METADATA,
    c.time("started_at"),
    c.time("ended_at", null=True),
    c.name("alert_id"),  # Alertmanager's fingerprint
    c.name("name"),
    c.json("labels", null=False),
    c.json("annotations", null=False),
    PrimaryKeyConstraint("alert_id", "started_at"),
)

API_TOKEN = Table(
    "api_token",
    METADATA,
    c.time("created_at"),
    c.time("revoked_at", null=True),
    Column("id", Uuid, nullable=False),
    c.prose("name", null=False),
    c.binary("secret"),  # hash
    Column("roles", ARRAY(Text), nullable=False),
    Column("services", ARRAY(Text), nullable=True),  # null: all
    PrimaryKeyConstraint("id"),
    UniqueConstraint("secret"),
)

LOOKUP_AUDIT = Table(
    "lookup_audit",
    METADATA,
    c.time("looked_at"),
    Column("id", Uuid, nullable=False),
    Column("token_id", Uuid, nullable=True),
    c.prose("asked", null=False),
    c.name("state"),
    PrimaryKeyConstraint("id"),
    Index("lookup_audit_time_idx", "looked_at"),
)

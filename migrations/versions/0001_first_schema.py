"""The first schema.

Revision ID: 0001
Revises:
"""

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_SCHEMA = """
CREATE TABLE tool_call (
    started_at timestamptz NOT NULL,
    told_at timestamptz,
    received_at timestamptz NOT NULL,
    duration_us bigint NOT NULL,
    attempts smallint NOT NULL,
    possibly_twice boolean NOT NULL,
    transient boolean NOT NULL,
    trace_id bytea NOT NULL,
    span_id bytea NOT NULL,
    parent_span_id bytea,
    service text COLLATE "C" NOT NULL,
    environment text COLLATE "C" NOT NULL,
    tool text COLLATE "C" NOT NULL,
    outcome text COLLATE "C" NOT NULL,
    code text COLLATE "C",
    reason text COLLATE "C",
    action text COLLATE "C" NOT NULL,
    effect text COLLATE "C" NOT NULL,
    reference_id text COLLATE "C",
    run_id text COLLATE "C",
    conversation_id text COLLATE "C",
    agent text COLLATE "C",
    version text COLLATE "C",
    exception_type text COLLATE "C",
    frame text COLLATE "C",
    fingerprint bytea,
    message text,
    attributes jsonb,
    PRIMARY KEY (trace_id, span_id, started_at),
    CONSTRAINT tool_call_ids_check CHECK (octet_length(trace_id) = 16 AND octet_length(span_id) = 8),
    CONSTRAINT tool_call_outcome_check CHECK (outcome <> 'ok' AND (outcome = 'cancelled') = (code IS NULL))
) PARTITION BY RANGE (started_at);
CREATE INDEX tool_call_told_idx ON tool_call (told_at) WHERE told_at IS NOT NULL;
CREATE INDEX tool_call_received_idx ON tool_call (received_at);
CREATE INDEX tool_call_error_idx ON tool_call (tool, code, received_at) WHERE code IS NOT NULL;
CREATE INDEX tool_call_group_idx ON tool_call (fingerprint, received_at) WHERE fingerprint IS NOT NULL;
CREATE INDEX tool_call_conversation_idx ON tool_call (conversation_id, started_at) WHERE conversation_id IS NOT NULL;

CREATE TABLE tool_call_ok (
    started_at timestamptz NOT NULL,
    told_at timestamptz,
    received_at timestamptz NOT NULL,
    duration_us bigint NOT NULL,
    attempts smallint NOT NULL,
    possibly_twice boolean NOT NULL,
    trace_id bytea NOT NULL,
    span_id bytea NOT NULL,
    parent_span_id bytea,
    service text COLLATE "C" NOT NULL,
    environment text COLLATE "C" NOT NULL,
    tool text COLLATE "C" NOT NULL,
    effect text COLLATE "C" NOT NULL,
    run_id text COLLATE "C",
    conversation_id text COLLATE "C",
    agent text COLLATE "C",
    version text COLLATE "C",
    attributes jsonb,
    PRIMARY KEY (trace_id, span_id, started_at),
    CONSTRAINT tool_call_ok_ids_check CHECK (octet_length(trace_id) = 16 AND octet_length(span_id) = 8)
) PARTITION BY RANGE (started_at);
CREATE INDEX tool_call_ok_told_idx ON tool_call_ok (told_at) WHERE told_at IS NOT NULL;
CREATE INDEX tool_call_ok_received_idx ON tool_call_ok USING brin (received_at) WITH (pages_per_range = 32);
CREATE INDEX tool_call_ok_conversation_idx ON tool_call_ok (conversation_id, started_at) WHERE conversation_id IS NOT NULL;

CREATE TABLE run_event (
    occurred_at timestamptz NOT NULL,
    told_at timestamptz,
    received_at timestamptz NOT NULL,
    amount bigint,
    severity smallint NOT NULL,
    trace_id bytea NOT NULL,
    span_id bytea NOT NULL,
    digest bytea NOT NULL,
    event_name text COLLATE "C" NOT NULL,
    service text COLLATE "C" NOT NULL,
    environment text COLLATE "C" NOT NULL,
    label text COLLATE "C",
    outcome text COLLATE "C",
    reference_id text COLLATE "C",
    run_id text COLLATE "C",
    conversation_id text COLLATE "C",
    version text COLLATE "C",
    attributes jsonb,
    PRIMARY KEY (trace_id, span_id, occurred_at, digest)
) PARTITION BY RANGE (occurred_at);
CREATE INDEX run_event_told_idx ON run_event (told_at) WHERE told_at IS NOT NULL;
CREATE INDEX run_event_name_idx ON run_event (event_name, received_at);
CREATE INDEX run_event_conversation_idx ON run_event (conversation_id, occurred_at) WHERE conversation_id IS NOT NULL;

CREATE TABLE log_record (
    occurred_at timestamptz NOT NULL,
    told_at timestamptz,
    received_at timestamptz NOT NULL,
    severity smallint NOT NULL,
    trace_id bytea NOT NULL,
    span_id bytea NOT NULL,
    digest bytea NOT NULL,
    event_name text COLLATE "C",
    service text COLLATE "C" NOT NULL,
    environment text COLLATE "C" NOT NULL,
    reference_id text COLLATE "C",
    exception_type text COLLATE "C",
    body text,
    stacktrace text,
    attributes jsonb,
    PRIMARY KEY (trace_id, span_id, occurred_at, digest)
) PARTITION BY RANGE (occurred_at);
CREATE INDEX log_record_told_idx ON log_record (told_at) WHERE told_at IS NOT NULL;
CREATE INDEX log_record_received_idx ON log_record USING brin (received_at) WITH (pages_per_range = 32);

CREATE TABLE reference (
    started_at timestamptz,
    received_at timestamptz NOT NULL,
    day date NOT NULL,
    attempts smallint,
    reference_id text COLLATE "C" NOT NULL,
    trace_id bytea NOT NULL,
    span_id bytea NOT NULL,
    service text COLLATE "C",
    environment text COLLATE "C",
    tool text COLLATE "C",
    outcome text COLLATE "C",
    code text COLLATE "C",
    reason text COLLATE "C",
    action text COLLATE "C",
    effect text COLLATE "C",
    fingerprint bytea,
    PRIMARY KEY (reference_id, trace_id, span_id, day)
) PARTITION BY RANGE (day);

CREATE TABLE error_group (
    first_seen timestamptz NOT NULL,
    status_at timestamptz,
    fingerprint bytea PRIMARY KEY,
    service text COLLATE "C" NOT NULL,
    environment text COLLATE "C" NOT NULL,
    tool text COLLATE "C" NOT NULL,
    code text COLLATE "C" NOT NULL,
    reason text COLLATE "C",
    exception_type text COLLATE "C",
    frame text COLLATE "C",
    sample_reference_id text COLLATE "C",
    status text COLLATE "C" NOT NULL DEFAULT 'open',
    versions text[] NOT NULL DEFAULT '{}'
);

CREATE TABLE error_group_tally (
    hour timestamptz NOT NULL,
    calls bigint NOT NULL,
    last_seen timestamptz NOT NULL,
    slot smallint NOT NULL,
    fingerprint bytea NOT NULL,
    PRIMARY KEY (fingerprint, hour, slot)
) WITH (fillfactor = 60);

CREATE TABLE call_total (
    calls bigint NOT NULL,
    duration_us bigint NOT NULL,
    attempts bigint NOT NULL,
    exemplar_at timestamptz,
    slot smallint NOT NULL,
    service text COLLATE "C" NOT NULL,
    environment text COLLATE "C" NOT NULL,
    tool text COLLATE "C" NOT NULL,
    outcome text COLLATE "C" NOT NULL,
    code text COLLATE "C" NOT NULL,
    exemplar_reference text COLLATE "C",
    exemplar_trace bytea,
    duration_buckets bigint[] NOT NULL,
    attempts_buckets bigint[] NOT NULL,
    PRIMARY KEY (service, environment, tool, outcome, code, slot)
) WITH (fillfactor = 50);

CREATE TABLE call_tally (
    hour timestamptz NOT NULL,
    calls bigint NOT NULL,
    slot smallint NOT NULL,
    service text COLLATE "C" NOT NULL,
    environment text COLLATE "C" NOT NULL,
    tool text COLLATE "C" NOT NULL,
    outcome text COLLATE "C" NOT NULL,
    code text COLLATE "C" NOT NULL,
    PRIMARY KEY (service, environment, tool, outcome, code, hour, slot)
) PARTITION BY RANGE (hour);

CREATE TABLE event_total (
    amount bigint NOT NULL,
    slot smallint NOT NULL,
    metric text COLLATE "C" NOT NULL,
    service text COLLATE "C" NOT NULL,
    environment text COLLATE "C" NOT NULL,
    label text COLLATE "C" NOT NULL,
    PRIMARY KEY (metric, service, environment, label, slot)
) WITH (fillfactor = 60);

CREATE TABLE label (
    kind text COLLATE "C" NOT NULL,
    service text COLLATE "C" NOT NULL,
    environment text COLLATE "C" NOT NULL,
    value text COLLATE "C" NOT NULL,
    PRIMARY KEY (kind, service, environment, value)
);

CREATE TABLE tool_catalog (
    first_seen timestamptz NOT NULL,
    last_seen timestamptz NOT NULL,
    service text COLLATE "C" NOT NULL,
    environment text COLLATE "C" NOT NULL,
    tool text COLLATE "C" NOT NULL,
    versions text[] NOT NULL,
    declared jsonb,
    PRIMARY KEY (service, environment, tool)
);

CREATE TABLE dead_letter (
    occurred_at timestamptz NOT NULL,
    acked_at timestamptz,
    acked_by text,
    id bytea PRIMARY KEY,
    trace_id bytea NOT NULL,
    service text COLLATE "C" NOT NULL,
    environment text COLLATE "C" NOT NULL,
    tool text COLLATE "C",
    reference_id text COLLATE "C",
    attributes jsonb
);

CREATE TABLE incident (
    started_at timestamptz NOT NULL,
    ended_at timestamptz,
    alert_id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    labels jsonb NOT NULL,
    annotations jsonb NOT NULL,
    PRIMARY KEY (alert_id, started_at)
);

CREATE TABLE api_token (
    created_at timestamptz NOT NULL,
    revoked_at timestamptz,
    id uuid PRIMARY KEY,
    name text NOT NULL,
    secret bytea NOT NULL UNIQUE,
    roles text[] NOT NULL,
    services text[]
);

CREATE TABLE lookup_audit (
    looked_at timestamptz NOT NULL,
    id uuid PRIMARY KEY,
    token_id uuid,
    asked text NOT NULL,
    state text COLLATE "C" NOT NULL
);
CREATE INDEX lookup_audit_time_idx ON lookup_audit (looked_at);

CREATE VIEW tool_call_all AS
    SELECT started_at, told_at, received_at, duration_us, attempts, possibly_twice, transient, trace_id, span_id,
           parent_span_id, service, environment, tool, outcome, code, reason, action, effect, reference_id, run_id,
           conversation_id, agent, version, exception_type, frame, fingerprint, message, attributes
      FROM tool_call
    UNION ALL
    SELECT started_at, told_at, received_at, duration_us, attempts, possibly_twice, false, trace_id, span_id,
           parent_span_id, service, environment, tool, 'ok'::text COLLATE "C", NULL, NULL, 'none'::text COLLATE "C", effect, NULL, run_id,
           conversation_id, agent, version, NULL, NULL, NULL, NULL, attributes
      FROM tool_call_ok;
"""


def upgrade() -> None:
    op.execute(_SCHEMA)


def downgrade() -> None:
    raise NotImplementedError("Going back would lose records: restore a backup instead.")

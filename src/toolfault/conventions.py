"""Every span attribute, event, metric and label name, once. No other module spells one.

`gen_ai.*`, `error.type`, `exception.*` are OpenTelemetry's semantic conventions; the rest is ours.
"""

from __future__ import annotations

# --- the semantic conventions we write and read -------------------------------------------------
OPERATION_NAME = "gen_ai.operation.name"
EXECUTE_TOOL = "execute_tool"
TOOL_NAME = "gen_ai.tool.name"
TOOL_CALL_ID = "gen_ai.tool.call.id"
TOOL_TYPE = "gen_ai.tool.type"
FUNCTION = "function"  # a type of tool: runs in the agent's process
EXTENSION = "extension"  # a type of tool: another program runs it, such as an MCP server
AGENT_NAME = "gen_ai.agent.name"
CONVERSATION_ID = "gen_ai.conversation.id"
REQUEST_MODEL = "gen_ai.request.model"
ERROR_TYPE = "error.type"
EXCEPTION_TYPE_OTEL = "exception.type"
EXCEPTION_MESSAGE = "exception.message"
EXCEPTION_STACKTRACE = "exception.stacktrace"
SERVICE_NAME = "service.name"
SERVICE_VERSION = "service.version"
ENVIRONMENT = "deployment.environment.name"
ENVIRONMENT_DEPRECATED = "deployment.environment"

# --- the record, on the ToolCallSpan and on its run event alike ---------------------------------
START = "toolfault.start"  # unix ns
DURATION = "toolfault.duration"  # s
OUTCOME = "toolfault.outcome"
CODE = "toolfault.code"
REASON = "toolfault.reason"
ATTEMPTS = "toolfault.attempts"
REFERENCE_ID = "toolfault.reference_id"
ACTION = "toolfault.action"
TRANSIENT = "toolfault.transient"
RETRYABLE = "toolfault.retryable"
RETRY_AFTER = "toolfault.retry_after"  # s
FIELD = "toolfault.field"
EFFECT = "toolfault.effect"
EVIDENCE = "toolfault.evidence"
POSSIBLY_TWICE = "toolfault.possibly_twice"
RUN_ID = "toolfault.run_id"
BUDGET_FAILURES = "toolfault.budget.failures"
BUDGET_LIMIT = "toolfault.budget.limit"
EXCEPTION_TYPE = "toolfault.exception_type"
FRAME = "toolfault.frame"  # module:function
MESSAGE = "toolfault.message"
USER_MESSAGE = "toolfault.user_message"
ATTEMPT_LIST = "toolfault.attempt_list"  # JSON, on the run event
SDK_MARK = "toolfault.sdk"  # set on every span of a process that has the library

#: Everything the record may hold; the service stores no other key of ours.
RECORD = frozenset(
    {
        START, DURATION, OUTCOME, CODE, REASON, ATTEMPTS, REFERENCE_ID, ACTION, TRANSIENT, RETRYABLE,
        RETRY_AFTER, FIELD, EFFECT, EVIDENCE, POSSIBLY_TWICE, RUN_ID, BUDGET_FAILURES, BUDGET_LIMIT,
        EXCEPTION_TYPE, FRAME, MESSAGE, USER_MESSAGE, ATTEMPT_LIST,
    }
)  # fmt: skip

# --- span event per attempt, and its fields (also those of ATTEMPT_LIST's objects) --------------
ATTEMPT_EVENT = "toolfault.attempt"
ATTEMPT_NUMBER = "number"
ATTEMPT_START = "start"  # unix ns
ATTEMPT_END = "end"  # unix ns
ATTEMPT_CODE = "code"
ATTEMPT_REASON = "reason"
ATTEMPT_EFFECT = "effect"
ATTEMPT_WAITED = "waited"  # s before it began

# --- run events and stamped log records ---------------------------------------------------------
EVENT_PREFIX = "toolfault."
TOOL_ERROR = "toolfault.tool_error"
TOOL_CALL = "toolfault.tool_call"
TOOL_DECLARED = "toolfault.tool_declared"
BUDGET_EXHAUSTED = "toolfault.budget_exhausted"
UNREGISTERED_TOOL = "toolfault.unregistered_tool"
BACKSTOP_REACHED = "toolfault.backstop_reached"
GENERIC_ERROR = "toolfault.generic_error"
MODEL_CALL = "toolfault.model_call"
MODEL_ERROR = "toolfault.model_error"
MODEL_RETRY = "toolfault.model_retry"
RUN_LIMIT_EXCEEDED = "toolfault.run_limit_exceeded"
DEAD_LETTER = "toolfault.dead_letter"
TELEMETRY_DROPPED = "toolfault.telemetry_dropped"
EXCEPTION = "toolfault.exception"
LOG = "toolfault.log"
#: Events that carry a call's whole record: they make the call's row, never a row of their own.
RECORD_EVENTS = frozenset({TOOL_ERROR, TOOL_CALL})
#: Log records with detail of a call: only an engineer may read them.
DETAIL_RECORDS = frozenset({EXCEPTION, LOG})

# --- attributes of single events ----------------------------------------------------------------
WRITES = "toolfault.writes"
IDEMPOTENT = "toolfault.idempotent"
OWNER = "toolfault.owner"
OWNER_CONTACT = "toolfault.owner_contact"
RUNBOOK = "toolfault.runbook"
REASONS = "toolfault.reasons"  # JSON object: declared reason -> words for the user
COUNT = "toolfault.count"  # records dropped, attempts of a model step
RESULT = "toolfault.result"  # of a model step: ok, error, exhausted
LIMIT = "toolfault.limit"
LOGGER_NAME = "toolfault.logger"
PAYLOAD = "toolfault.payload"  # JSON object: what is needed to do a dead letter's work again

# --- metrics of /metrics/tools (counters are exposed with the suffix _total) --------------------
TOOL_CALLS = "toolfault_tool_calls"
TOOL_CALL_DURATION = "toolfault_tool_call_duration_seconds"
TOOL_ATTEMPTS = "toolfault_tool_attempts"
BUDGET_EXHAUSTED_TOTAL = "toolfault_budget_exhausted"
GENERIC_ERROR_TOTAL = "toolfault_generic_error"
BACKSTOP_REACHED_TOTAL = "toolfault_backstop_reached"
UNREGISTERED_TOOL_CALLS = "toolfault_unregistered_tool_calls"
RUN_LIMIT_EXCEEDED_TOTAL = "toolfault_run_limit_exceeded"
MODEL_CALLS = "toolfault_model_calls"
MODEL_ERRORS = "toolfault_model_errors"
MODEL_ATTEMPTS = "toolfault_model_attempts"
MODEL_RETRIES_EXHAUSTED = "toolfault_model_retries_exhausted"
ERROR_GROUPS_NEW = "toolfault_error_groups_new"
DEAD_LETTERS_WAITING = "toolfault_dead_letters_waiting"
LATE_CALLS = "toolfault_late_calls"
TELEMETRY_DROPPED_TOTAL = "toolfault_telemetry_dropped"

# --- metrics of /metrics ------------------------------------------------------------------------
INGEST_RECORDS = "toolfault_ingest_records"
INGEST_REFUSED = "toolfault_ingest_refused"
INGEST_IGNORED = "toolfault_ingest_ignored"
INGEST_REQUESTS = "toolfault_ingest_requests"
INGEST_REQUEST_DURATION = "toolfault_ingest_request_duration_seconds"
INGEST_QUEUE_BYTES = "toolfault_ingest_queue_bytes"
INGEST_SCRUB_FAULTS = "toolfault_ingest_scrub_faults"
DATABASE_BYTES = "toolfault_database_bytes"
PARTITIONS_AHEAD = "toolfault_partitions_ahead"

# --- labels -------------------------------------------------------------------------------------
LABEL_SERVICE = "service"
LABEL_ENVIRONMENT = "environment"
LABEL_TOOL = "tool"
LABEL_OUTCOME = "outcome"
LABEL_CODE = "code"
LABEL_AGENT = "agent"
LABEL_MODEL = "model"
UNDECLARED = "__undeclared__"  # tools that were neither declared nor ever ok
OTHER = "__other__"  # past the cap

# --- dashboards' fixed uids, which alerts link to -------------------------------------------------
DASHBOARDS = {
    "overview": "toolfault-overview",
    "tool": "toolfault-tool",
    "on-call": "toolfault-on-call",
    "pipeline": "toolfault-pipeline",
}

# --- sizes that hold everywhere -----------------------------------------------------------------
MAX_MESSAGE = 300  # characters
MAX_TEXT = 4096  # characters of free text kept per record
MAX_STACK = 8192  # characters
MAX_ATTRIBUTES = 128
MAX_NAME = 200  # characters
MAX_LABEL = 100  # characters
MAX_REQUEST_BYTES = 64 * 1024 * 1024  # after decompression
MAX_REFERENCE = 64  # characters of a foreign reference

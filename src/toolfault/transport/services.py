"""gRPC, AWS and the clients of model providers."""

from __future__ import annotations

from toolfault import carried
from toolfault.error_map import Rule, by_cause, permanent, timed_out
from toolfault.errors import ToolError
from toolfault.taxonomy import Code, Effect
from toolfault.transport.statuses import (
    BUSY,
    CONFLICT,
    DISCONNECTED,
    FAILED,
    FORBIDDEN,
    INVALID,
    NEVER_SENT,
    NOT_FOUND,
    RATE_LIMITED,
    READ_TIMED_OUT,
    UNAUTHORIZED,
    coded,
    tls_failed,
)

#: After google.rpc.Code's mapping to HTTP; what the state of the system forbids is a conflict.
_GRPC_CODES: dict[str, Rule] = {
    "INVALID_ARGUMENT": INVALID,
    "OUT_OF_RANGE": INVALID,
    "DEADLINE_EXCEEDED": timed_out(),
    "NOT_FOUND": NOT_FOUND,
    "ALREADY_EXISTS": CONFLICT,
    "ABORTED": CONFLICT,
    "FAILED_PRECONDITION": CONFLICT,
    "PERMISSION_DENIED": FORBIDDEN,
    "UNAUTHENTICATED": UNAUTHORIZED,
    "RESOURCE_EXHAUSTED": RATE_LIMITED,
    # Servers and broken streams say it alike, also when the request had been worked on.
    "UNAVAILABLE": permanent("upstream_unavailable", code=Code.UNAVAILABLE),
    "CANCELLED": permanent("upstream_cancelled", code=Code.UNAVAILABLE),
}
#: How grpc's own client begins when it found no connection to send on.
_GRPC_NOT_CONNECTED = (
    "failed to connect to all addresses",
    "errors resolving ",
    "DNS resolution failed",
)


def _grpc(tool: str, error: BaseException) -> ToolError | None:
    code = carried.read(error, "code")
    name = carried.read(code() if callable(code) else None, "name")
    if not isinstance(name, str):
        return None
    details = carried.read(error, "details")
    told = details() if callable(details) else None
    told = told if isinstance(told, str) else ""
    if name == "UNAVAILABLE" and told.startswith(_GRPC_NOT_CONNECTED):
        return NEVER_SENT(tool, error)
    if name == "RESOURCE_EXHAUSTED" and "message larger than max" in told:
        return FAILED(tool, error)  # a size limit, perhaps met by the answer: no rate, no retry
    return _GRPC_CODES.get(name, FAILED)(tool, error)


_AWS_CODES: dict[str, Rule] = {
    code: rule
    for rule, codes in {
        RATE_LIMITED: (
            "BandwidthLimitExceeded EC2ThrottledException PriorRequestNotComplete "
            "ProvisionedThroughputExceededException RequestLimitExceeded RequestThrottled "
            "RequestThrottledException SlowDown ThrottledException Throttling ThrottlingException "
            "TooManyRequestsException"
        ),
        BUSY: "ServiceUnavailable ServiceUnavailableException Unavailable",
        READ_TIMED_OUT: "RequestTimeout RequestTimeoutException",
        UNAUTHORIZED: (
            "AuthFailure ExpiredToken ExpiredTokenException IncompleteSignature InvalidAccessKeyId "
            "InvalidClientTokenId MissingAuthenticationToken RequestExpired SignatureDoesNotMatch "
            "UnrecognizedClientException"
        ),
        FORBIDDEN: "AccessDenied AccessDeniedException NotAuthorized UnauthorizedOperation",
        NOT_FOUND: "NoSuchBucket NoSuchEntity NoSuchKey ResourceNotFoundException",
        CONFLICT: (
            "ConditionalCheckFailedException ConflictException EntityAlreadyExists "
            "ResourceConflictException ResourceInUseException TransactionCanceledException "
            "TransactionConflictException TransactionInProgressException"
        ),
    }.items()
    for code in codes.split()
}


def _aws(tool: str, error: BaseException) -> ToolError | None:
    """By the service's own error code; where that is unknown the HTTP status decides."""
    response = carried.read(error, "response")
    told = response.get("Error") if isinstance(response, dict) else None
    rule = _AWS_CODES.get(str(told.get("Code"))) if isinstance(told, dict) else None
    return rule(tool, error) if rule else None


_NO_CREDENTIALS = permanent("credentials_missing", code=Code.PERMISSION_DENIED, effect=Effect.NONE)

_BOTOCORE: dict[str, Rule] = {
    f"botocore.exceptions.{name}": rule
    for name, rule in {
        "ClientError": _aws,
        "EndpointConnectionError": NEVER_SENT,
        "ConnectTimeoutError": NEVER_SENT,
        "ProxyConnectionError": NEVER_SENT,
        "SSLError": tls_failed,
        "ReadTimeoutError": READ_TIMED_OUT,
        "ConnectionClosedError": DISCONNECTED,
        "ResponseStreamingError": DISCONNECTED,
        "HTTPClientError": by_cause(DISCONNECTED),
        "NoCredentialsError": _NO_CREDENTIALS,
        "PartialCredentialsError": _NO_CREDENTIALS,
        "CredentialRetrievalError": _NO_CREDENTIALS,
        "TokenRetrievalError": _NO_CREDENTIALS,
    }.items()
}

_QUOTA_SPENT = permanent("upstream_quota_spent", code=Code.RATE_LIMITED)


def _openai_rate(tool: str, error: BaseException) -> ToolError | None:
    """A spent quota is a 429 as well, but waiting does not fill it."""
    spent = carried.read(error, "code") == "insufficient_quota"
    return _QUOTA_SPENT(tool, error) if spent else None


_MODELS: dict[str, Rule] = {
    "openai.APIConnectionError": by_cause(DISCONNECTED),
    "openai.APITimeoutError": by_cause(READ_TIMED_OUT),
    "openai.RateLimitError": _openai_rate,
    "anthropic.APIConnectionError": by_cause(DISCONNECTED),
    "anthropic.APITimeoutError": by_cause(READ_TIMED_OUT),
    "google.genai.errors.APIError": coded,
}
#: What agent frameworks raise in the place of their providers' errors.
_FRAMEWORKS: dict[str, Rule] = {
    "agents.exceptions.ModelTimeoutError": READ_TIMED_OUT,
    "pydantic_ai.exceptions.ModelConnectionError": by_cause(DISCONNECTED),
    "pydantic_ai.exceptions.ModelTimeoutError": by_cause(READ_TIMED_OUT),
    "pydantic_ai.exceptions.ModelQuotaExceededError": _QUOTA_SPENT,
    "strands.types.exceptions.ModelThrottledException": RATE_LIMITED,
}

RULES = {"grpc.RpcError": _grpc} | _BOTOCORE | _MODELS | _FRAMEWORKS

"""Why a request is not taken, each with the status of both transports.

IngestError
├── MalformedError          400  INVALID_ARGUMENT
├── UnauthenticatedError    401  UNAUTHENTICATED
├── NotAllowedError         403  PERMISSION_DENIED
├── TooLargeError           413  RESOURCE_EXHAUSTED, without RetryInfo: never resent
└── RetryableError
    ├── Overloaded          429  UNAVAILABLE + RetryInfo
    └── StoreUnavailable    503  UNAVAILABLE + RetryInfo
"""

from __future__ import annotations

from google.rpc.code_pb2 import Code


class IngestError(Exception):
    """The request is not taken; the message is shown to the client."""

    http_status = 400
    rpc_code: int = Code.INVALID_ARGUMENT


class MalformedError(IngestError):
    """The bytes are not what they say they are."""


class UnauthenticatedError(IngestError):
    """No token, or not one of ours."""

    http_status = 401
    rpc_code = Code.UNAUTHENTICATED


class NotAllowedError(IngestError):
    """The token does not have the role `ingest`."""

    http_status = 403
    rpc_code = Code.PERMISSION_DENIED


class TooLargeError(IngestError):
    """The body is over the limit, before or after decompression."""

    http_status = 413
    rpc_code = Code.RESOURCE_EXHAUSTED

    def __init__(self, max_bytes: int) -> None:
        super().__init__(f"the body is larger than {max_bytes:,} bytes after decompression")


class RetryableError(IngestError):
    """The same request will be taken later."""

    rpc_code = Code.UNAVAILABLE

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after  # s


class Overloaded(RetryableError):  # noqa: N818 - says a state, as the status does
    """More is waiting than the service is allowed to hold."""

    http_status = 429


class StoreUnavailable(RetryableError):  # noqa: N818 - says a state, as the status does
    """The database cannot be written to at the moment."""

    http_status = 503

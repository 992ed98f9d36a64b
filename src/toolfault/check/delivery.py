"""Reaches an endpoint and sends the sample; every way that fails is a sentence and a next step."""

from __future__ import annotations

import http.client
import socket
import ssl
from typing import TYPE_CHECKING, NoReturn

import grpc
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from toolfault.check.endpoint import GRPC, Endpoint
from toolfault.check.step import CheckError

if TYPE_CHECKING:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

_SECONDS = 10.0
_METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
_PROTOBUF = "application/x-protobuf"
_ADDRESS = "OTEL_EXPORTER_OTLP_ENDPOINT or --endpoint"
_TOKEN = "Set OTEL_EXPORTER_OTLP_HEADERS='authorization=Bearer TOKEN' to a token with the role ingest (`toolfault token create NAME --role ingest`)."  # noqa: S105 - a sentence
_NOT_OTLP = f"Check http or https, the port and the path of {_ADDRESS}, and OTEL_EXPORTER_OTLP_PROTOCOL: 4317 takes grpc, 4318 http/protobuf."


def connect(to: Endpoint) -> str:
    """Open a connection and close it again.

    Raises:
        CheckError: nobody is there.
    """
    place = f"{to.host}:{to.port}"
    try:
        socket.create_connection((to.host, to.port), _SECONDS).close()
    except socket.gaierror:
        raise CheckError(
            f"The name {to.host} is not known here.", f"Check {_ADDRESS}, and this machine's DNS."
        ) from None
    except ConnectionRefusedError:
        raise CheckError(
            f"Nothing listens on {place}.",
            f"Start what should (`toolfault up`, or the Collector), or correct {_ADDRESS}.",
        ) from None
    except OSError as error:
        raise CheckError(
            f"{place} cannot be reached ({error.strerror or error}).",
            "Check the route and the firewalls between here and there.",
        ) from None
    return f"{place} answers."


def shake_hands(to: Endpoint) -> str:
    """Agree on TLS, or say that none is asked for.

    Raises:
        CheckError: there is no TLS, or a certificate that is not trusted.
    """
    try:
        with (
            socket.create_connection((to.host, to.port), _SECONDS) as plain,
            to.tls().wrap_socket(plain, server_hostname=to.host) as connection,
        ):
            return f"{connection.version()}, and its certificate is trusted."
    except ssl.SSLCertVerificationError as error:
        raise CheckError(
            f"Its certificate is not trusted: {error.verify_message}.",
            "Set OTEL_EXPORTER_OTLP_CERTIFICATE to the file of the authority that signed it, and "
            "use the host name it was made for.",
        ) from None
    except (OSError, ssl.SSLError):
        raise CheckError(
            "What listens there speaks no TLS.", f"Write http:// instead of https:// in {_ADDRESS}."
        ) from None


def send(to: Endpoint, request: ExportTraceServiceRequest) -> str:
    """Send the sample and read what the endpoint says about it.

    Raises:
        CheckError: it is not taken, or taken in part.
    """
    response = _by_grpc(to, request) if to.protocol == GRPC else _by_http(to, request)
    partial = response.partial_success
    if partial.rejected_spans:
        raise CheckError(
            f"It takes the request and refuses the call in it: {partial.error_message}",
            "Look at the log of what listens there.",
        )
    return f"It takes telemetry over {to.protocol}."


def _by_http(to: Endpoint, request: ExportTraceServiceRequest) -> ExportTraceServiceResponse:
    if to.is_tls:
        client: http.client.HTTPConnection = http.client.HTTPSConnection(
            to.host, to.port, timeout=_SECONDS, context=to.tls()
        )
    else:
        client = http.client.HTTPConnection(to.host, to.port, timeout=_SECONDS)
    try:
        client.request(
            "POST", to.path, request.SerializeToString(), to.headers | {"Content-Type": _PROTOBUF}
        )
        answer = client.getresponse()
        body = answer.read()
    except (http.client.HTTPException, OSError):
        _fail("What listens there does not speak HTTP")
    finally:
        client.close()
    if answer.status != http.HTTPStatus.OK:
        _judge(answer.status)
    if answer.headers.get_content_type() != _PROTOBUF:
        _fail("What answers there is not OTLP")
    return _parsed(body)


def _parsed(body: bytes) -> ExportTraceServiceResponse:
    try:
        return ExportTraceServiceResponse.FromString(body)
    except DecodeError:
        _fail("What answers there is not OTLP")


def _judge(status: int) -> NoReturn:
    if status in (401, 403):
        _refuse_token(f"{status}")
    if status in (429, 502, 503, 504):
        _not_now(f"{status}")
    _fail(f"What answers there does not take OTLP ({status})")


def _by_grpc(to: Endpoint, request: ExportTraceServiceRequest) -> ExportTraceServiceResponse:
    with _channel(to) as channel:
        export = channel.unary_unary(
            _METHOD,
            request_serializer=type(request).SerializeToString,
            response_deserializer=ExportTraceServiceResponse.FromString,
        )
        try:
            taken: ExportTraceServiceResponse = export(
                request,
                timeout=_SECONDS,
                metadata=tuple((name.lower(), value) for name, value in to.headers.items()),
            )
        except grpc.RpcError as error:
            _judge_code(error.code(), error.details())
        return taken


def _judge_code(code: grpc.StatusCode, details: str | None) -> NoReturn:
    if code in (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED):
        _refuse_token(code.name)
    if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED):
        # gRPC says the same of a server that is busy and of one that is no gRPC server.
        raise CheckError(
            f"It takes nothing over gRPC at the moment ({code.name}: {details}).",
            f"Try again. If it stays so, look at the service's /readyz. {_NOT_OTLP}",
        )
    _fail(f"What answers there does not take OTLP over gRPC ({code.name})")


def _channel(to: Endpoint) -> grpc.Channel:
    target = f"[{to.host}]:{to.port}" if ":" in to.host else f"{to.host}:{to.port}"
    if not to.is_tls:
        return grpc.insecure_channel(target)
    roots = to.certificate.read_bytes() if to.certificate else None
    return grpc.secure_channel(target, grpc.ssl_channel_credentials(roots))


def _refuse_token(status: str) -> NoReturn:
    raise CheckError(
        f"It does not take the token that was shown, or asks for one ({status}).", _TOKEN
    )


def _not_now(status: str) -> NoReturn:
    raise CheckError(
        f"It takes nothing at the moment ({status}).",
        "Try again. If it stays so: the service's /readyz and the log of the Collector say why.",
    )


def _fail(told: str) -> NoReturn:
    raise CheckError(f"{told}.", _NOT_OTLP)

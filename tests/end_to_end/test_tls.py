"""Every port speaks TLS with a certificate of one's own authority, and nothing else."""

import ssl
import subprocess
from urllib.parse import urlsplit

import grpc
import httpx
import pytest
from tests.end_to_end.harness import running
from tests.ingest import otlp
from tests.ingest.conftest import method

PROTOBUF = {"content-type": "application/x-protobuf"}
_CURVE = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


def _openssl(folder, *arguments):
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """A folder with an authority's certificate, and one it signed for 127.0.0.1."""
    folder = tmp_path_factory.mktemp("authority")
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    own = ["req", "-x509", *_CURVE, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2"]
    _openssl(folder, *own, "-subj", "/CN=authority of a test")
    asked = ["req", "-new", *_CURVE, "-keyout", "server.key", "-out", "server.csr"]
    _openssl(folder, *asked, "-subj", "/CN=toolfault")
    signed = ["x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key"]
    signed += ["-CAcreateserial", "-days", "2", "-extfile", "names", "-out", "server.pem"]
    _openssl(folder, *signed)
    return folder


@pytest.fixture(scope="module")
def secure(service, authority):
    """The addresses of a service that has the certificate."""
    with running(
        TOOLFAULT_DATABASE_URL=service.database_url,
        TOOLFAULT_TLS_CERTIFICATE=str(authority / "server.pem"),
        TOOLFAULT_TLS_KEY=str(authority / "server.key"),
    ) as addresses:
        yield addresses


@pytest.fixture(scope="module")
def trusting(authority):
    with httpx.Client(verify=ssl.create_default_context(cafile=authority / "ca.pem")) as client:
        yield client


def _export(reference):
    told = {
        "gen_ai.tool.name": "book",
        "toolfault.outcome": "failed",
        "toolfault.code": "UNAVAILABLE",
        "toolfault.reference_id": reference,
    }
    span = otlp.span(attributes=told, trace_id=reference.encode() * 2)
    return otlp.traces(span).SerializeToString()


def test_http_and_pages_are_reached_by_whoever_trusts_the_authority(secure, trusting):
    assert {urlsplit(address).scheme for address in secure.values()} == {"https"}
    sent = trusting.post(
        f"{secure['http']}/v1/traces", content=_export("tls-http"), headers=PROTOBUF
    )
    assert sent.status_code == 200
    found = trusting.get(f"{secure['web']}/api/v1/references/tls-http").json()
    assert found["state"] == "found"


def test_grpc_is_reached_by_whoever_trusts_the_authority(secure, trusting, authority):
    trusted = grpc.ssl_channel_credentials((authority / "ca.pem").read_bytes())
    with grpc.secure_channel(urlsplit(secure["grpc"]).netloc, trusted) as channel:
        assert channel.unary_unary(method("traces"))(_export("tls-grpc"), timeout=30) == b""
    found = trusting.get(f"{secure['web']}/api/v1/references/tls-grpc").json()
    assert found["state"] == "found"


@pytest.mark.parametrize("port", ["http", "web"])
def test_whoever_does_not_trust_the_authority_is_told_by_tls(secure, port):
    with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        httpx.get(secure[port])


@pytest.mark.parametrize("port", ["http", "web"])
def test_without_tls_there_is_no_answer(secure, port):
    with pytest.raises(httpx.RemoteProtocolError):
        httpx.get(secure[port].replace("https:", "http:"))


def test_without_tls_there_is_no_answer_over_grpc(secure):
    with (
        grpc.insecure_channel(urlsplit(secure["grpc"]).netloc) as channel,
        pytest.raises(grpc.RpcError) as refused,
    ):
        channel.unary_unary(method("traces"))(b"", timeout=5)
    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE

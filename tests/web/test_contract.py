"""Requests made from the API's own description: no server error, no answer of another shape."""

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.browser.site import afternoon

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
OPERATIONS = [
    "GET /api/v1/references/{ref}",
    "GET /api/v1/errors",
    "GET /api/v1/groups",
    "GET /api/v1/groups/{fingerprint}",
    "PATCH /api/v1/groups/{fingerprint}",
    "GET /api/v1/tools",
    "GET /api/v1/dead-letters",
    "GET /api/v1/dead-letters/{letter}",
    "POST /api/v1/dead-letters/{letter}/ack",
    "POST /api/v1/alerts",
    "GET /api/v1/audit",
]
#: The same requests every time: a failure is the code's, never the dice's.
QUICK = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def api(new_database):
    """The API's description as it is served, and calls behind it."""
    with afternoon(new_database()) as site:
        yield schemathesis.openapi.from_url(f"{site.url}/api/openapi.json")


def _operations(api):
    found = [result.ok() for result in api.get_all_operations()]
    return {f"{one.method.upper()} {one.path}": one for one in found}


def test_every_operation_is_tried(api):
    assert sorted(_operations(api)) == sorted(OPERATIONS)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_answers_as_its_description_says(api, operation):
    @QUICK
    @given(case=_operations(api)[operation].as_strategy())
    def check(case):
        case.call_and_validate(checks=CHECKS)

    check()

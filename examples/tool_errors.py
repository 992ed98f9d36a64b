"""The taxonomy, the map and the retry decisions, end to end.

python examples/tool_errors.py
"""

from __future__ import annotations

import toolfault
from toolfault import ToolErrorMap, ToolFailure, ToolRefusal, permanent, refusal, transient
from toolfault.testing import capture_tool_errors


class SupplierError(Exception):
    """The supplier's client raises one exception for everything and puts the status on it."""

    def __init__(self, status_code: int) -> None:
        super().__init__(f"supplier said {status_code} for customer 4711, token=not-a-real-token")
        self.status_code = status_code


UPSTREAM = ToolErrorMap(
    {ConnectionError: transient("upstream_unavailable", retry_after=0.01)},
    statuses={
        403: permanent("upstream_rejected", code=toolfault.Code.PERMISSION_DENIED),
        409: refusal("booking_not_cancellable", "This fare is non-refundable."),
    },
)


def cancelling(*failures: BaseException, **options: object) -> dict[str, object]:
    """Cancel a booking whose supplier first fails like this; how it went."""
    left = list(failures)

    @toolfault.guard("cancel", error_map=UPSTREAM, max_attempts=3, **options)
    def cancel(booking: str) -> str:
        if left:
            raise left.pop(0)
        return f"{booking} cancelled"

    with capture_tool_errors() as reported, toolfault.run("conversation-2"):
        answer = cancel("A-1042")
    call = reported.calls[0]
    return {
        "outcome": call.outcome.value,
        "code": call.code and call.code.value,
        "attempts": len(call.attempts),
        "effect": call.effect.value,
        "answer": answer,
    }


def main() -> dict[str, dict[str, object]]:
    """Each kind of failure, and what became of it."""
    told = {
        "a failed connection is repeated": cancelling(ConnectionRefusedError()),
        "a status decides where no type does": cancelling(SupplierError(403)),
        "a refusal is an answer, told once": cancelling(SupplierError(409)),
        "an author's own error is not overruled": cancelling(
            ToolRefusal("cancel", "too_late", "The train has left.")
        ),
        "an exception nobody mapped is not repeated": cancelling(KeyError("A-1042")),
        "unless repeating does no harm": cancelling(KeyError("A-1042"), idempotent=True),
        "a permanent failure is not repeated": cancelling(
            ToolFailure("cancel", "gone", code="NOT_FOUND")
        ),
        "a time-out may have cancelled it": cancelling(TimeoutError()),
    }
    for case, ended in told.items():
        print(
            f"{case:44} {ended['outcome']:9} {ended['code'] or '-':17} "
            f"attempts {ended['attempts']}  effect {ended['effect']}"
        )
    return told


if __name__ == "__main__":
    main()

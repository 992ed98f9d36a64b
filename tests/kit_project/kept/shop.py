"""Tools of a shop that keep their contract: a function, an async one, a stream."""

import toolfault
from toolfault import ToolFailure, ToolRefusal, handlers

PASSWORD = "not-a-real-" + "password-4711"


class OrdersDownError(Exception):
    """As a database driver would say it."""

    def __init__(self):
        super().__init__(f"SELECT * FROM orders at db.internal with {PASSWORD}")  # noqa: S608


ORDERS = {"A-1042": {"total": 12.5}}


def find(order_id):
    if order_id == "down":
        raise OrdersDownError
    return ORDERS.get(order_id)


@toolfault.guard(
    "get_order",
    writes=False,
    reasons={
        "order_unknown": "We found no order with this id.",
        "orders_down": "Our order service is not available.",
    },
    error_map=toolfault.ToolErrorMap({OrdersDownError: toolfault.transient("orders_down")}),
)
def get_order(order_id):
    found = find(order_id)
    if found is None:
        raise ToolFailure("get_order", "order_unknown", code="NOT_FOUND")
    return found


@toolfault.guard("refund_order", reasons={"already_refunded": "This order was refunded before."})
async def refund_order(order_id):
    raise ToolRefusal("refund_order", "already_refunded", f"{order_id} was refunded before.")


@toolfault.guard("list_orders", writes=False, reasons={"orders_gone": "The list broke off."})
def list_orders():
    yield {"order_id": "A-1042"}
    raise ToolFailure("list_orders", "orders_gone", code="UNAVAILABLE")


@toolfault.guard(
    "cancel_order",
    on_error=handlers.fail_invocation(),
    reasons={"ledger_broken": "The order was not cancelled."},
)
def cancel_order():
    raise ToolFailure("cancel_order", "ledger_broken", code="INTERNAL")

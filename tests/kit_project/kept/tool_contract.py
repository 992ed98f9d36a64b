"""What the tools of the shop promise."""

import shop

from toolfault.contract import Case

CASES = [
    Case("get_order", "order_unknown", lambda: shop.get_order("A-0")),
    Case("get_order", "orders_down", lambda: shop.get_order("down")),
    Case("refund_order", "already_refunded", lambda: shop.refund_order("A-1042")),
    Case("list_orders", "orders_gone", lambda: shop.list_orders()),  # noqa: PLW0108 - as the others
    Case("cancel_order", "ledger_broken", lambda: shop.cancel_order()),  # noqa: PLW0108
]
SECRETS = [shop.PASSWORD]

"""What the tools of the shop promise, and do not keep."""

import shop

from toolfault.contract import Case

DOWN = "orders_down"
CASES = [
    Case("swallows", DOWN, shop.swallows),
    Case("succeeds", DOWN, shop.succeeds),
    Case("crashes", DOWN, shop.crashes),
    Case("renames", DOWN, shop.renames),
    Case("names_exception", DOWN, shop.names_exception),
    Case("names_sql", DOWN, shop.names_sql),
    Case("names_host", DOWN, shop.names_host),
    Case("names_secret", DOWN, shop.names_secret),
    Case("fine", "own_code", shop.decorated),
    Case("fine", DOWN, shop.wordy),
    Case("plain", DOWN, shop.plain),
    Case("changed", DOWN, shop.changed),
    Case("broken_case", DOWN, lambda: {}["gone"]),
]
SECRETS = [shop.PASSWORD]

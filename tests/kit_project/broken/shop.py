"""Tools of a shop, each of which breaks one rule of the contract."""

import toolfault
from toolfault import ToolFailure

PASSWORD = "not-a-real-" + "password-4711"


def promising(*reasons):
    return {"reasons": dict.fromkeys(reasons, "Words for the user.")}


@toolfault.guard("swallows", **promising("orders_down"))
def swallows():
    return []


@toolfault.guard("succeeds", **promising("orders_down"))
def succeeds():
    return {"order": 1}


@toolfault.guard("crashes", **promising("orders_down"))
def crashes():
    raise KeyError("db.internal: SELECT")


@toolfault.guard("renames", **promising("orders_down"))
def renames():
    raise ToolFailure("renames", "orders_gone", transient=True)


def failing(tool, message):
    @toolfault.guard(tool, **promising("orders_down"))
    def tool_of_its_own():
        raise ToolFailure(tool, "orders_down", code="CONFLICT", message=message)

    return tool_of_its_own


names_exception = failing("names_exception", "requests.ConnectionError: no route")
names_sql = failing("names_sql", "it said: drop table, or SELECT id FROM orders")
names_host = failing("names_host", "the node orders-7.prod.internal does not answer")
names_secret = failing("names_secret", f"could not sign in with {PASSWORD}")
changed = failing("changed", "The order has been changed meanwhile.")
fine = failing("fine", "The order has been changed meanwhile.")


def decorated():
    answer = fine()
    answer["error"]["hint"] = "try again"
    answer["error"]["code"] = "OOPS"
    return answer


def wordy():
    answer = fine()
    answer["error"]["hint"] = "try again"
    return answer


def plain():
    return {"status": "error", "message": "An internal error occurred."}


@toolfault.guard("forgotten", **promising("never_driven"))
def forgotten():
    return 1

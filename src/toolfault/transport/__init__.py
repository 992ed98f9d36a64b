"""The transport map every guard starts from: what the exceptions of common clients mean.

It imports none of them: they are known by their dotted names. Transient only where nothing landed:
the connection was never made, or the other side turned the request away (429, 503), or rolled it
back. Whatever broke after the request was on its way is `UNAVAILABLE` and not transient.

A client that repeats calls by itself shows only its last failure. Where that matters, switch its
own retries off and let the guard repeat, which keeps account of every attempt.
"""

from toolfault.error_map import ToolErrorMap
from toolfault.transport import clients, databases, services
from toolfault.transport.statuses import STATUSES

__all__ = ["TRANSPORT"]

TRANSPORT = ToolErrorMap(clients.RULES | databases.RULES | services.RULES, statuses=STATUSES)

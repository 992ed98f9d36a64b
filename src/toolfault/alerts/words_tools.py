"""What the alerts about tools and models say."""

from __future__ import annotations

from toolfault.alerts import signals
from toolfault.alerts.signals import TICKETS, TOOLS
from toolfault.alerts.words import OPEN_LIST, Words
from toolfault.taxonomy import Code

_TOOL = "Tool <tool> of <service> (<environment>)"

WORDS: dict[str, Words] = {
    "internal_error_spike": Words(
        summary="INTERNAL errors of <tool> are far above the usual level: most likely a bug.",
        description=(
            f"{_TOOL}: <value%> of calls (<count> of <calls_made>) ended INTERNAL in the last "
            "<short>; usual at this hour: <usual%>."
        ),
        meaning=(
            "Calls of one tool end in errors that nobody mapped, more than <factor> times as often as "
            "this tool does at this hour, and it is no single conversation's doing: at least <apart> in "
            "each of the last two stretches of <stretch>, or at least <twice_apart> in each of the last two "
            "stretches of <short>, or at least <burst> within <short>. Users are being told that the tool "
            "failed."
        ),
        checks=(
            OPEN_LIST,
            "Look at the tool's versions on the dashboard: did one start with the rise?",
            "Open the newest error group of the tool: one exception type and frame, or many?",
        ),
        causes=(
            "A deploy of the agent or of the tool's backend.",
            "A change of a backend's answers that the tool does not understand.",
            "Input of a new shape: one caller, one tenant, one locale.",
        ),
        over="The share of INTERNAL calls is back at its usual level on the dashboard.",
        quotes=(TOOLS, signals.INTERNAL, "short"),
    ),
    "internal_errors_elevated": Words(
        summary="INTERNAL errors of <tool> have been above the usual level for a while.",
        description=(
            f"{_TOOL}: <value%> of calls (<count> of <calls_made>) ended INTERNAL in the last <long>, in "
            "at least <buckets> separate stretches of <bucket>; usual: <usual%>."
        ),
        meaning=(
            "A smaller rise than a spike that lasts: more than <factor> times the usual share over "
            "<long>, in at least <buckets> separate stretches of <bucket> of the last <sustained>."
        ),
        checks=(
            OPEN_LIST,
            "List the tool's error groups by first seen: is one of them new?",
            "Compare the share per version and per environment on the dashboard.",
        ),
        causes=(
            "A bug on a path that few callers take.",
            "A dependency that fails now and then.",
            "A slow roll-out of a bad version.",
        ),
        over="The share over <long> has sunk below <factor> times the usual.",
        quotes=(TOOLS, signals.INTERNAL, "long"),
    ),
    "many_tools_failing": Words(
        summary="Several tools of <service> broke at once: look at what they share, not at one tool.",
        description=(
            "<value> tools of <service> (<environment>) are far above their usual share of INTERNAL "
            "errors at the same time; <tools> are enough to say so."
        ),
        meaning=(
            "At least <tools> tools of one service meet the condition of a spike; those whose spike is "
            "switched off do not count. The alerts of the single tools are muted while this one fires."
        ),
        checks=(
            "Was the service deployed, restarted or given new configuration?",
            "Open `lookup_url`: do the exception details name the same host, secret or library?",
            "Are other services in the same environment affected?",
        ),
        causes=(
            "A bad deploy of the agent.",
            "A shared backend, network or identity provider that is down.",
            "A configuration or secret that was changed for all tools.",
        ),
        over="Fewer than <tools> tools are above their usual level; those left alert by themselves.",
        dashboard="overview",
    ),
    "credential_rejected": Words(
        summary="Most calls of <tool> are denied: its credential has probably expired.",
        description=(
            f"{_TOOL}: <value%> of recent calls were denied by the service behind it "
            "(PERMISSION_DENIED)."
        ),
        meaning=(
            "More than <share%> of calls come back with 401 or 403, either at least <calls> of them in "
            "<buckets> or more stretches of <bucket> of the last <medium>, or at least <burst> in one "
            "such stretch: more than two users repeating themselves could make. Refusals by policy are "
            "not counted here."
        ),
        checks=(
            "When does the tool's credential expire, and was it rotated?",
            "Open `lookup_url`: is it 401 (who are you) or 403 (you may not)?",
            "Call the backend by hand with the same identity.",
        ),
        causes=(
            "An expired or revoked token, key or certificate.",
            "A role or grant that was removed.",
            "A clock that is wrong, so that tokens are not yet or no longer valid.",
        ),
        over="Calls succeed again; the share of denied calls is under <share%>.",
    ),
    "permission_denied": Words(
        summary="Calls of <tool> keep being denied: an identity or permission problem.",
        description=(
            f"{_TOOL}: <value%> of calls (<count> of <calls_made>) were denied in the last <long>, in "
            "at least <buckets> separate stretches of <bucket>; usual: <usual%>."
        ),
        meaning=(
            "Part of the calls is denied by the service behind the tool, more than usual and not in "
            "one user's burst. Refusals by policy are not counted here."
        ),
        checks=(
            "Open `lookup_url`: is it always the same conversation, user or tenant?",
            "Which grants or roles changed on the backend today?",
            "Does one replica or one version make all of the denied calls?",
        ),
        causes=(
            "A tenant whose grant was withdrawn.",
            "One of several replicas with an old credential.",
            "A new call of the tool that needs a role nobody gave it.",
        ),
        over="Denied calls are back at their usual share over <long>.",
        quotes=(TOOLS, signals.PERMISSION_DENIED, "long"),
    ),
    "policy_refusals_elevated": Words(
        summary="Calls of <tool> are refused by policy or by a person more often than usual.",
        description=(
            f"{_TOOL}: <value%> of calls (<count> of <calls_made>) were refused before they ran in "
            "the last <slow>; usual: <usual%>."
        ),
        meaning=(
            "Nothing is broken and nothing ran: a policy or a person said no, more than <factor> times "
            "as often as usual over <slow>, in at least <buckets> stretches of <slow_stretch>. Either the "
            "policy is wrong, or the model tries what it should not."
        ),
        checks=(
            "Open `lookup_url`: which reasons are named, and which rule says no?",
            "Was the policy, the approval step or the agent's instruction changed?",
            "Is it one conversation or one user? Then it may be an attack on the agent.",
        ),
        causes=(
            "A policy that became stricter than meant.",
            "An instruction or a model version that calls the tool more eagerly.",
            "Somebody steering the agent to tools it should not use.",
        ),
        over="Refusals are back at their usual share over <slow>.",
        quotes=(TICKETS, signals.REFUSED, "slow"),
    ),
    "invalid_arguments_elevated": Words(
        summary="The model gives <tool> invalid arguments more often than usual.",
        description=(
            f"{_TOOL}: <value%> of calls (<count> of <calls_made>) had invalid arguments in the last "
            "<slow>; usual: <usual%>. The linked list names the fields."
        ),
        meaning=(
            "Calls fail because their arguments do not match, more than <factor> times as often as "
            "usual over <slow>, in at least <buckets> stretches of <slow_stretch>. Runs become slower and "
            "dearer, some give up."
        ),
        checks=(
            "Open `lookup_url`: which field is it?",
            "Did the tool's schema or description change, or the model's version?",
            "Does the message tell the model what a valid value looks like?",
        ),
        causes=(
            "A field that was renamed, made required or narrowed.",
            "A description that no longer says the format, such as that of a date.",
            "A new model, or a shorter context that cuts the description off.",
        ),
        over="Invalid arguments are back at their usual share over <slow>.",
        quotes=(TICKETS, signals.INVALID_ARGUMENT, "slow"),
    ),
    "budget_exhaustion_rising": Words(
        summary="More conversations than usual give up on <tool>: what it depends on is failing.",
        description=(
            f"{_TOOL}: <count> conversations used up its failure budget in the last <medium>, at "
            "<calls_made> calls; usual share: <usual%>."
        ),
        meaning=(
            "Conversations ran out of retries for this tool and told their users so, more than "
            "<factor> times as often as usual. Each conversation counts once."
        ),
        checks=(
            "Open `lookup_url`: UNAVAILABLE (down, slow) or RATE_LIMITED (too many)?",
            "Is the backend healthy, by its own dashboard or status page?",
            "Look at the attempts and durations on the dashboard: failing fast or timing out?",
        ),
        causes=(
            "A dependency that is down or slow.",
            "A quota that is used up.",
            "A timeout that is shorter than the backend's answer now takes.",
        ),
        over="Conversations no longer run out of budget more often than usual.",
        look_up=(("code", Code.UNAVAILABLE), ("code", Code.RATE_LIMITED)),
        quotes=(TOOLS, signals.BUDGET_EXHAUSTED, "medium"),
    ),
}

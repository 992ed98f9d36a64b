"""What the alerts about models, and about single events, say."""

from __future__ import annotations

from toolfault.alerts import signals
from toolfault.alerts.signals import MODELS
from toolfault.alerts.words import OPEN_LIST, Words
from toolfault.taxonomy import GENERIC_ERROR, UNMAPPED_FAILURE, Outcome

_TOOL = "Tool <tool> of <service> (<environment>)"
_MODEL = "Model <model> of <service> (<environment>)"

WORDS: dict[str, Words] = {
    "model_error_spike": Words(
        summary="Calls of the model <model> fail far above the usual level.",
        description=(
            f"{_MODEL}: <value%> of steps (<count> of <calls_made>) failed in the last <short>; "
            "usual: <usual%>."
        ),
        meaning="Steps in which the model is called end in errors, more than <factor> times the usual.",
        checks=(
            "Look at the provider's status page.",
            "Are other models of the same provider affected?",
            "Was the key, the quota, the region or the model's name changed?",
        ),
        causes=("An outage of the provider.", "A used-up quota.", "A model that was withdrawn."),
        over="Steps succeed at their usual share.",
        dashboard="overview",
        quotes=(MODELS, signals.MODEL_ERROR, "short"),
    ),
    "model_retries_exhausted": Words(
        summary="Calls of the model <model> run out of retries: users see the fallback answer.",
        description=(
            f"{_MODEL}: <count> steps in the last <medium> failed after the last retry, of "
            "<calls_made>; usual share: <usual%>."
        ),
        meaning="The retries no longer hide the provider's failures: users are told to come back.",
        checks=(
            "Look at the provider's status page.",
            "Are the retries spread out, or do they all fall into the same second?",
            "Would another model or region take over?",
        ),
        causes=(
            "A longer outage of the provider.",
            "Rate limits below the traffic.",
            "Timeouts that are too short.",
        ),
        over="Steps no longer fail after the last retry more often than usual.",
        dashboard="overview",
        quotes=(MODELS, signals.RETRIES_EXHAUSTED, "medium"),
    ),
    "unguarded_error": Words(
        summary="<tool> answered with its framework's generic error: it is not guarded.",
        description=f"{_TOOL} sent the generic error text to the model; times in the last <medium>: <value>.",
        meaning=(
            "An exception left the tool and the framework hid it behind a fixed sentence. The model "
            "cannot tell what happened, and nobody gets a reference."
        ),
        checks=(
            "Open `lookup_url`: which tool, since which version?",
            "Does the tool carry the guard, and is the hook installed in this process?",
            "Is it wrapped by another decorator that swallows the guard?",
        ),
        causes=(
            "A new tool without the guard.",
            "An agent started without the hook.",
            "A guard inside instead of outside.",
        ),
        over="No generic text has been seen for <medium>.",
        look_up=(("reason", GENERIC_ERROR),),
    ),
    "backstop_reached": Words(
        summary="An error of <tool> reached the backstop: no guard had mapped it.",
        description=f"{_TOOL}: <value> errors in the last <medium> were caught only by the last net.",
        meaning=(
            "The hook around the whole agent caught what the tool's own guard should have. The user got "
            "a reference, but neither reason nor effect are known as well as they could be."
        ),
        checks=(
            OPEN_LIST,
            "Does the tool carry the guard?",
            "Which exception type is it, and does the error map know it?",
        ),
        causes=(
            "A tool without a guard.",
            "A framework callback that fails.",
            "An exception type no map knows.",
        ),
        over="Nothing has reached the backstop for <medium>.",
        look_up=(("reason", UNMAPPED_FAILURE),),
    ),
    "unregistered_tool_called": Words(
        summary="A model of <service> called a tool that is not registered.",
        description=(
            "Agents of <service> (<environment>) were asked for an unregistered tool; times in the last "
            "<medium>: <value>. The name is on the linked cards; it is never a label."
        ),
        meaning="The model asked for a tool this deployment does not have: usually a rename.",
        checks=(
            "Open `lookup_url`: which name did the model use?",
            "Was a tool renamed, removed or left out of this deployment?",
            "Does the instruction or an example still use the old name?",
        ),
        causes=(
            "A renamed tool.",
            "An instruction that names a tool of another agent.",
            "A model that made a name up.",
        ),
        over="No unregistered tool has been asked for in <medium>.",
        dashboard="overview",
        look_up=(("outcome", Outcome.NOT_FOUND),),
    ),
    "run_limit_exceeded": Words(
        summary="Runs of the agent <agent> were stopped at a limit: most likely a loop.",
        description=(
            "Agent <agent> of <service> (<environment>): <value> runs in the last <medium> were "
            "stopped at a limit of model calls or iterations."
        ),
        meaning="A run went round until it was stopped. The user waited and got no answer.",
        checks=(
            "Open `lookup_url`: which tool's errors repeat within one conversation?",
            "Does that error tell the model to correct something it cannot correct?",
            "Did the model or the limit change?",
        ),
        causes=(
            "An error map that says `fix_arguments` where nothing can be fixed.",
            "Two tools that undo each other.",
            "A limit that is too low.",
        ),
        over="No run has hit the limit for <medium>.",
        dashboard="overview",
    ),
    "new_internal_error_group": Words(
        summary="<tool> fails in a way not seen before.",
        description=f"{_TOOL} fails in a way not seen before; new groups of INTERNAL errors in the last <medium>: <value>.",
        meaning="An exception type, frame or reason that this tool has never shown: usually a new bug.",
        checks=(
            "Open `lookup_url`, then the newest group of the tool.",
            "Which version was it first seen in?",
            "How many conversations met it, and did their actions take effect?",
        ),
        causes=(
            "A bug in a new version.",
            "A backend that fails in a new way.",
            "A refactoring that moved a known bug.",
        ),
        over=(
            "Resolve or mute the group when it is dealt with; resolved, it reopens in a new version. The "
            "alert ends by itself and does not wait for that, only until no other new group comes."
        ),
    ),
    "dead_letters_waiting": Words(
        summary="Calls of <tool> wait to be replayed or written off.",
        description=f"{_TOOL}: <value> dead letters have waited for at least <wait>.",
        meaning="Work that was accepted and then failed for good waits for a person's decision.",
        checks=(
            "List them: `toolfault dead-letters`.",
            "Read the card of each reference: did the action take effect?",
            "Is the cause gone? Then replay; else tell those concerned.",
        ),
        causes=(
            "An outage of the tool's backend.",
            "A call that can never succeed.",
            "A consumer of dead letters that stopped.",
        ),
        over="Every letter is acknowledged.",
    ),
}

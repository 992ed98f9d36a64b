"""What the alerts about the telemetry itself say."""

from __future__ import annotations

from toolfault.alerts.words import Words

WORDS: dict[str, Words] = {
    "target_down": Words(
        summary="Prometheus cannot scrape <instance>.",
        description="Target <instance> of job <job> has not answered for <wait>.",
        meaning=(
            "One replica of toolfault, or its database, or the Collector that agents send to, does not answer "
            "Prometheus."
        ),
        checks=(
            "Ask `/readyz` of the instance, or the Collector's health check: it says what is missing.",
            "Is the process running, and what does its log say?",
            "Does the scrape token still have the role `scrape`?",
        ),
        causes=(
            "A crashed or restarting replica or Collector.",
            "A database that is away.",
            "A network rule, a changed port or token.",
        ),
        over="The target is up on Prometheus' page of targets.",
        dashboard="pipeline",
    ),
    "telemetry_absent": Words(
        summary="No toolfault target can be scraped: no other alert about tools can fire.",
        description="No target of job <tools_job> has answered for <wait>, or none is known.",
        meaning="The totals of all tools are out of sight. Agents keep working; nobody would notice errors.",
        checks=(
            "Ask `/readyz` of each replica.",
            "Is the database up? The totals are read from it.",
            "Does Prometheus still have the scrape job?",
        ),
        causes=(
            "All replicas or the database are down.",
            "A scrape configuration without the job.",
            "An expired scrape token.",
        ),
        over="At least one target is up. Counts made meanwhile appear at once: they are totals.",
        dashboard="pipeline",
    ),
    "telemetry_silent": Words(
        summary="<service> reports no tool calls though it usually does at this hour.",
        description=(
            "<service> (<environment>) made <value> calls in <bucket> at this time yesterday, and "
            "none in the last <medium>."
        ),
        meaning="Either nobody uses the service, or its telemetry no longer arrives.",
        checks=(
            "Does the service have traffic, by its own metrics?",
            "Do its logs tell of failed exports, and does the Collector's queue grow?",
            "Was it deployed without the hook or with another endpoint?",
        ),
        causes=(
            "An agent that is down.",
            "A Collector or network that lost the way.",
            "A new endpoint, token or service name.",
        ),
        over="Calls of the service are counted again.",
        dashboard="pipeline",
    ),
    "telemetry_dropped": Words(
        summary="<service> had to drop telemetry: some references cannot be found.",
        description="<service> (<environment>) dropped <value> records in the last <medium>.",
        meaning=(
            "The service could not deliver for so long that its buffer ran over. Look-ups of that day "
            "say so."
        ),
        checks=(
            "Was ingestion down or overloaded? See the pipeline dashboard.",
            "Is the Collector between them healthy?",
            "Do all processes of the service drop, or one?",
        ),
        causes=(
            "An outage of ingestion or of the way to it.",
            "A burst larger than the buffer.",
            "A process killed before it could export.",
        ),
        over="No drops have been reported for <medium>.",
        dashboard="pipeline",
    ),
    "late_telemetry": Words(
        summary="Calls of <service> arrive long after they ended: they alert nobody.",
        description=(
            "<service> (<environment>): <value> calls in the last <medium> were received more than ten "
            "minutes after their end. They are stored, but not part of the counters of alerts."
        ),
        meaning="A backlog is being delivered, or a clock is wrong.",
        checks=(
            "Compare the clock of the service's hosts with the time.",
            "Is a Collector working off a backlog after an outage?",
            "Is somebody importing old records?",
        ),
        causes=("A clock that stands or lags.", "A Collector's backlog.", "An import."),
        over="Calls arrive within ten minutes of their end.",
        dashboard="pipeline",
    ),
    "ingestion_refusing": Words(
        summary="Ingestion at <instance> refuses telemetry.",
        description="<instance> refused <value> records or requests in the last <medium>.",
        meaning=(
            "Requests are turned away for now (senders repeat them) or for their token (senders, a "
            "Collector too, drop what they hold), or records can never be stored (they are lost and counted)."
        ),
        checks=(
            "On the pipeline dashboard: turned away for now, for its token (401, 403), or never storable, and why?",
            "Is the database up, fast and not full?",
            "Which sender has no valid ingest token (a Collector's log says so), or makes the refused records?",
        ),
        causes=(
            "More traffic than the database takes.",
            "A database that is away.",
            "A token that was revoked, or is not in the database that was restored.",
            "A sender with broken identifiers.",
        ),
        over="Nothing has been refused for <medium>.",
        dashboard="pipeline",
    ),
    "partitions_not_ahead": Words(
        summary="The database has partitions for fewer than <least> days ahead.",
        description="Partitions reach <value> days ahead; at 0 records lose their place in time.",
        meaning="Maintenance makes a week of partitions ahead and has failed for days.",
        checks=(
            "Run `toolfault db upgrade`, then look at the service's log for the maintenance's error.",
            "Does the database role still own the tables?",
            "Does a long transaction or lock stand in the way?",
        ),
        causes=(
            "A lock held for days.",
            "A role without rights.",
            "No replica that ran long enough.",
        ),
        over="Partitions reach a week ahead.",
        dashboard="pipeline",
    ),
    "scrubber_faults": Words(
        summary="The scrubber failed on some texts: they were withheld.",
        description="<instance> withheld <value> texts in the last <medium> as the scrubber failed on them.",
        meaning="No secret was stored, but exception details are missing. This is a fault in toolfault.",
        checks=(
            "Look for the scrubber's fault in the service's log.",
            "Which service's texts are withheld?",
            "Was toolfault upgraded?",
        ),
        causes=(
            "Text of a kind the scrubber does not expect.",
            "A bug in a new version.",
            "Memory running out.",
        ),
        over="No text has been withheld for <medium>.",
        dashboard="pipeline",
    ),
    "rules_failing": Words(
        summary="A rule of toolfault fails in Prometheus.",
        description="Rule group <rule_group> failed <value> evaluations in the last <medium>.",
        meaning="Alerts of this group may not fire.",
        checks=(
            "Open Prometheus' page of rules: it shows the error.",
            "Run `promtool check rules` on the files that are loaded.",
            "Are two versions of the files loaded at once?",
        ),
        causes=(
            "Duplicate rules.",
            "Labels added twice by relabelling.",
            "A Prometheus too old for the rules (2.42 is needed).",
        ),
        over="No evaluation has failed for <medium>.",
        dashboard="pipeline",
    ),
    "watchdog": Words(
        summary="Always firing: proves that alerts reach people.",
        description="This alert never resolves. Being told that it stopped is the alert.",
        meaning="A dead man's switch waits for it and raises the alarm when it stays away.",
        checks=(
            "When it stopped: is Prometheus running and evaluating?",
            "Is Alertmanager running, and does it reach the switch?",
            "Does the switch itself work?",
        ),
        causes=(
            "Prometheus or Alertmanager is down.",
            "A way out that is blocked.",
            "A changed address of the switch.",
        ),
        over="The switch hears from it again.",
        dashboard="pipeline",
    ),
}

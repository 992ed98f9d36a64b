"""Alertmanager's configuration: who is told, how often, and what mutes what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolfault import conventions as names
from toolfault.alerts.promql import PLACE, TOOL
from toolfault.alerts.spec import alert_name

if TYPE_CHECKING:
    from toolfault.alerts.spec import Spec

_PAGER, _CHAT, _TICKETS, _SWITCH, _TOOLFAULT = (
    "pager", "chat", "tickets", "dead-mans-switch", "toolfault",
)  # fmt: skip
_OF_TOOLS = (
    "internal_error_spike",
    "internal_errors_elevated",
    "new_internal_error_group",
    "backstop_reached",
)


def alertmanager(spec: Spec) -> dict[str, Any]:
    """The configuration."""
    return {
        "global": {"resolve_timeout": "5m"},
        "route": _routes(spec),
        "inhibit_rules": inhibitions(),
        "receivers": _receivers(spec),
    }


def _routes(spec: Spec) -> dict[str, Any]:
    waits = spec.waits
    return {
        "receiver": _CHAT,
        # one message per kind of problem and service, not one per tool
        "group_by": ["alertname", *PLACE],
        "group_wait": waits.group,
        "group_interval": waits.group_again,
        "repeat_interval": waits.repeat,
        "routes": [
            {
                "receiver": _SWITCH,
                "matchers": [f'alertname="{alert_name("watchdog")}"'],
                "group_by": ["alertname"],
                "group_wait": "0s",
                "group_interval": "1m",
                "repeat_interval": waits.alive,
            },
            # cards point at what fires, whoever else is told
            {
                "receiver": _TOOLFAULT,
                "matchers": ['alertname=~"Toolfault.+"'],
                "group_interval": waits.cards,
                "continue": True,
            },
            {
                "receiver": _PAGER,
                "matchers": ['severity="critical"'],
                "repeat_interval": waits.repeat_critical,
            },
            *(
                {"receiver": _owned(owner), "matchers": [f'owner="{owner}"']}
                for owner in spec.receivers.owner_channels
            ),
            {"receiver": _TICKETS, "matchers": ['severity="ticket"']},
            # after a `continue` the receiver above is reached only by a route of its own
            {"receiver": _CHAT},
        ],
    }


def inhibitions() -> list[dict[str, Any]]:
    """What need not be said while something larger is. Staging mutes nothing in production."""
    return [
        _mutes(("internal_error_spike",), ("internal_errors_elevated",), TOOL),
        _mutes(("credential_rejected",), ("permission_denied",), TOOL),
        _mutes(("many_tools_failing",), _OF_TOOLS, PLACE),
        # without telemetry its consequences are not news
        _mutes(("telemetry_absent",), ("telemetry_silent", "target_down"), ()),
    ]


def _mutes(
    sources: tuple[str, ...], targets: tuple[str, ...], equal: tuple[str, ...]
) -> dict[str, Any]:
    rule: dict[str, Any] = {
        "source_matchers": [_any_of(sources)],
        "target_matchers": [_any_of(targets)],
    }
    return {**rule, "equal": [*equal]} if equal else rule


def _any_of(keys: tuple[str, ...]) -> str:
    return f'alertname=~"{"|".join(alert_name(key) for key in keys)}"'


def _receivers(spec: Spec) -> list[dict[str, Any]]:
    to = spec.receivers
    return [
        {"name": _PAGER, "pagerduty_configs": [_page(spec)]},
        _chat(_CHAT, to.chat_url_file, to.chat_channel),
        _chat(_TICKETS, to.chat_url_file, to.ticket_channel),
        *(
            _chat(_owned(owner), to.chat_url_file, channel)
            for owner, channel in to.owner_channels.items()
        ),
        {
            "name": _SWITCH,
            "webhook_configs": [{"url": to.dead_mans_switch, "send_resolved": False}],
        },
        {"name": _TOOLFAULT, "webhook_configs": [_webhook(spec)]},
    ]


def _page(spec: Spec) -> dict[str, Any]:
    """Several tools of a service are one page: it says what each is, its links lead to the service."""
    place = [f"{label}={{{{ .CommonLabels.{label} | urlquery }}}}" for label in PLACE]
    of_service = {
        "lookup_url": f"{spec.links.toolfault}/errors?{'&'.join(place)}",
        "dashboard_url": (
            f"{spec.links.grafana}/d/{names.DASHBOARDS['overview']}?"
            f"{'&'.join(f'var-{one}' for one in place)}"
        ),
        "runbook_url": "",  # of one alert it is the same for all
    }
    return {
        "routing_key_file": spec.receivers.pager_key_file,
        "description": (
            "{{ range $i, $one := or .Alerts.Firing .Alerts }}{{ if $i }} {{ end }}"
            "{{ $one.Annotations.summary }}{{ end }}"
        ),
        "links": [
            {
                "text": text,
                "href": f"{{{{ with .CommonAnnotations.{name} }}}}{{{{ . }}}}"
                f"{{{{ else }}}}{of_service[name]}{{{{ end }}}}",
            }
            for text, name in _LINKS
        ],
    }


_LINKS = (
    ("Calls", "lookup_url"),
    ("Dashboard", "dashboard_url"),
    ("Runbook", "runbook_url"),
)


def _chat(name: str, url_file: str, channel: str) -> dict[str, Any]:
    links = " | ".join(f"<{{{{ .Annotations.{link} }}}}|{text}>" for text, link in _LINKS)
    return {
        "name": name,
        "slack_configs": [
            {
                "api_url_file": url_file,
                "channel": channel,
                "send_resolved": True,
                "title": "[{{ .Status }}] {{ .CommonLabels.alertname }}",
                "text": f"{{{{ range .Alerts }}}}{{{{ .Annotations.description }}}}\n{links}\n{{{{ end }}}}",
            }
        ],
    }


def _owned(owner: str) -> str:
    return f"chat of {owner}"


def _webhook(spec: Spec) -> dict[str, Any]:
    # any replica will do: they share the incidents
    webhook = {"url": f"{spec.stack.replicas[0]}/api/v1/alerts", "send_resolved": True}
    if not spec.stack.token_file:
        return webhook
    return {
        **webhook,
        "http_config": {"authorization": {"credentials_file": spec.stack.token_file}},
    }

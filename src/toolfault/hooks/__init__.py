"""Hooks of agent frameworks, one module for each; none is imported before it is asked for."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from opentelemetry import trace

from toolfault.hooks import patch
from toolfault.joined import SpanMode
from toolfault.telemetry import setup
from toolfault.telemetry.declared import Tool

__all__ = ["SpanMode", "Tool", "instrument", "uninstrument"]

#: The module that is there when a framework is installed: our module for it.
_FRAMEWORKS = {
    "google.adk": "adk",
    "agents.tool_context": "openai_agents",
    "langgraph.prebuilt": "langgraph",
    "pydantic_ai": "pydantic_ai",
    "strands": "strands",
    "mcp.server.mcpserver": "mcp",
    "fastmcp": "fastmcp",
}


def instrument(**options: Any) -> list[str]:
    """Hook the agent frameworks that are installed, for the whole process; their names.

    Call it once, after `configure()` and before agents are made. Nothing the agents do changes, unless `act=True`.

    Args:
        **options: those of every hook: `act`, `span`, `error_map`, `max_attempts`, `budget_limit`.
    """
    _mark_spans()
    hooked = []
    for framework, ours in _FRAMEWORKS.items():
        if _installed(framework):
            importlib.import_module(f"toolfault.hooks.{ours}").instrument(**options)
            hooked.append(ours)
    return hooked


def uninstrument() -> None:
    """Leave agents made from now on alone."""
    patch.restore()


def _mark_spans() -> None:
    provider: Any = trace.get_tracer_provider()
    if hasattr(provider, "add_span_processor"):  # an SDK's
        setup.mark_spans(provider)


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False

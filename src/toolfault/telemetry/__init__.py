"""Telemetry of tool calls: spans, run events, exception detail. Needs opentelemetry-api alone.

Nothing in here raises into the agent, and nothing but the exception detail quotes an exception.
"""

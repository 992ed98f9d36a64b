"""Hooks of agent frameworks."""

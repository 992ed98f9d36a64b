"""Alerts as data: a typed specification, and pure functions from it to rules, routes and runbooks."""

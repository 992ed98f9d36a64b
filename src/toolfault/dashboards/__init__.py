"""Dashboards as data: a typed specification, and pure functions from it to what Grafana reads."""

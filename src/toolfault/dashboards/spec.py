"""What a dashboard is made of, before it takes Grafana's shape."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Kind = Literal["timeseries", "stat", "table", "heatmap", "timeline"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prom:
    """A query of Prometheus."""

    expr: str
    legend: str = ""
    exemplars: bool = False


@dataclass(frozen=True, slots=True)
class Sql:
    """A query of PostgreSQL."""

    statement: str


@dataclass(frozen=True, slots=True)
class Link:
    """Where a point or a row leads."""

    title: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table; those a table does not name are hidden, and still there for links."""

    name: str  # in the result; `Value #A` of the first Prometheus query
    title: str
    unit: str = ""
    width: int | None = None
    links: tuple[Link, ...] = ()
    colours: Mapping[str, str] = field(default_factory=dict)  # of values
    limits: Mapping[float, str] = field(default_factory=dict)  # colours from a value on


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One panel: what is asked, how it is shown, and what it means."""

    kind: Kind
    title: str
    says: str
    queries: tuple[Prom | Sql, ...]
    nothing: str  # shown where there is no data
    unit: str = ""  # Grafana's; every panel but a table has one
    width: int = 12  # of 24
    height: int = 8
    decimals: int | None = None
    limits: Mapping[float, str] = field(default_factory=dict)  # colours from a value on
    colours: Mapping[str, str] = field(default_factory=dict)  # of series, by their legend
    links: tuple[Link, ...] = ()
    columns: tuple[Column, ...] = ()
    sort: str = ""  # a column's title: largest first
    stacked: bool = False
    #: Why there may be nothing to show though everything works.
    empty: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading between panels."""

    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """What the reader chooses; its values come from Prometheus."""

    name: str
    title: str
    query: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """A page."""

    key: str  # of `conventions.DASHBOARDS`
    title: str
    says: str
    variables: tuple[Variable, ...]
    content: tuple[Panel | Section, ...]

    @property
    def panels(self) -> tuple[Panel, ...]:
        """Its panels, without the headings."""
        return tuple(one for one in self.content if isinstance(one, Panel))

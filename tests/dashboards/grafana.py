"""What Grafana does with a dashboard's queries, links and variables, and nothing else."""

import re
from datetime import UTC, datetime
from urllib.parse import quote

import httpx
import psycopg
from psycopg.rows import dict_row

from toolfault.dashboards.build import dashboards
from toolfault.dashboards.grafana import to_json


class Grafana:
    """The pages of a specification over one Prometheus and one PostgreSQL, read with the role for it."""

    def __init__(self, prometheus, database_url, spec, began, *, step=1, rounds=0):
        self._prometheus = prometheus
        self._http = httpx.Client(timeout=30)
        self._rows = psycopg.connect(
            f"{database_url}?options=-crole%3Dtoolfault_read", row_factory=dict_row, autocommit=True
        )
        self.spec, self.began, self.step, self.rounds = spec, began, step, rounds
        self.until = datetime.now(UTC).timestamp()
        self.specified = {one.key: one for one in dashboards(spec)}
        self.pages = {key: to_json(one) for key, one in self.specified.items()}

    # --- variables --------------------------------------------------------------------------------

    def values(self, page, chosen=None):
        """The values of each choice, narrowed by those before it: all, or those given."""
        found = {}
        for variable in page["templating"]["list"]:
            if variable["type"] == "query":
                metric, label = re.fullmatch(
                    r"label_values\((.*), (\w+)\)", variable["query"]["query"]
                ).groups()
                listed = self._get(
                    f"label/{label}/values", **{"match[]": self.promql(metric, found)}
                )
                one = (chosen or {}).get(variable["name"])
                assert one is None or one in listed
                found[variable["name"]] = listed if one is None else [one]
        return found

    # --- queries ----------------------------------------------------------------------------------

    def promql(self, expression, values):
        """An expression with its variables, as the Prometheus data source fills them in."""
        span = f"{int(self.until - self.began) + 1}s"
        rate = f"{5 + self.step}s"
        expression = expression.replace("$__rate_interval", rate).replace("$__range", span)
        for name, listed in values.items():
            alternatives = "|".join(
                re.sub(r"[\\^$*+?.()|\[\]{}]", r"\\\\\g<0>", one) for one in listed
            )
            expression = expression.replace(f"${name}", f"({alternatives})")
        assert "$" not in expression
        return expression

    def sql(self, statement, values):
        """A statement with its macros and variables, as the PostgreSQL data source fills them in."""
        first, last = (
            f"'{datetime.fromtimestamp(at, UTC).isoformat()}'" for at in (self.began, self.until)
        )
        statement = re.sub(r"\$__timeFilter\((\w+)\)", rf"\1 BETWEEN {first} AND {last}", statement)
        statement = statement.replace("$__timeFrom()", first).replace("$__timeTo()", last)
        for name, listed in values.items():
            quoted = ",".join("'" + one.replace("'", "''") + "'" for one in listed)
            statement = statement.replace(f"${{{name}:sqlstring}}", quoted)
        assert "$" not in statement
        return statement

    def rows(self, statement, values):
        return self._rows.execute(self.sql(statement, values)).fetchall()

    def now(self, expression, values):
        """Labels and value of each series at the end of the time shown."""
        found = self._get("query", query=self.promql(expression, values), time=self.until)["result"]
        return [(one["metric"], float(one["value"][1])) for one in found]

    def over_time(self, expression, values):
        """Labels and points of each series."""
        found = self._get(
            "query_range", query=self.promql(expression, values), start=self.began, end=self.until, step=self.step,
        )["result"]  # fmt: skip
        return [(one["metric"], [(at, float(v)) for at, v in one["values"]]) for one in found]

    def data_of(self, target, values):
        if "rawSql" in target:
            return self.rows(target["rawSql"], values)
        asked = self.now if target["instant"] else self.over_time
        return asked(target["expr"], values)

    def exemplars(self, expression, values):
        asked = {"query": self.promql(expression, values), "start": self.began, "end": self.until}
        return [
            one["labels"]
            for series in self._get("query_exemplars", **asked)
            for one in series["exemplars"]
        ]

    def _get(self, path, **asked):
        is_query = path.startswith("query")
        sent = {"data" if is_query else "params": asked}
        method = "POST" if is_query else "GET"
        told = self._http.request(method, f"{self._prometheus}/api/v1/{path}", **sent).json()
        assert told["status"] == "success", (told, asked)
        return told["data"]

    def close(self):
        self._http.close()
        self._rows.close()

    # --- links ------------------------------------------------------------------------------------

    def open(self, url):
        return self._http.get(url)

    def link(self, url, fields):
        """A link of a row or of a series' point, as Grafana fills it in."""
        times = {"from": self.began, "to": self.until}
        for name, at in times.items():
            iso = (
                datetime.fromtimestamp(at, UTC)
                .isoformat(timespec="milliseconds")
                .replace("+00:00", "Z")
            )
            url = url.replace(f"${{__{name}:date:iso}}", iso).replace(
                f"${{__{name}}}", f"{at * 1000:.0f}"
            )
        for name, value in fields.items():
            told = "" if value is None else str(value)
            for kind in ("__data.fields", "__field.labels"):
                url = url.replace(f"${{{kind}.{name}:percentencode}}", quote(told, safe=""))
                url = url.replace(f"${{{kind}.{name}:raw}}", told)
        assert "$" not in url
        return url

"""Values as Grafana writes them, of the units that the dashboards use."""

_SIZES = ("B", "KiB", "MiB", "GiB", "TiB")
_SUFFIXES = {"reqps": " req/s", "rowsps": " rows/s", "d": " days"}


def shown(value, unit, decimals=None):
    if unit.startswith("time:"):
        return str(value)[5:19]
    if unit == "" or isinstance(value, str):
        return str(value)
    value = float(value)
    if unit == "percentunit":
        return f"{100 * value:.{1 if decimals is None else decimals}f}%"
    if unit == "bytes":
        power = 0
        while abs(value) >= 1024 and power < len(_SIZES) - 1:
            value, power = value / 1024, power + 1
        return f"{_short(value)} {_SIZES[power]}"
    if unit == "s":
        return f"{_short(value * 1000)} ms" if abs(value) < 1 else f"{_short(value)} s"
    return (
        f"{_short(value) if decimals is None else f'{value:.{decimals}f}'}{_SUFFIXES.get(unit, '')}"
    )


def _short(value):
    return f"{value:.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"

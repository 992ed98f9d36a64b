"""What look-ups and lists of errors cost in a small and in a large database, asked in turn.

    python benchmarks/growth.py /var/tmp/one /var/tmp/ten

Both are filled by `benchmarks/lookup.py --fill-only`. Each has a service of its own; the two get
the same questions one after the other, so that whatever else the machine does strikes both.
"""

from __future__ import annotations

import argparse
import http.client
import random
import statistics
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import psycopg
from lookup import filters, sample_of, sending, service, times

from toolfault.store.embedded import EmbeddedPostgres


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("folders", nargs=2, type=Path, metavar="DIR")
    asked.add_argument("--rate", type=int, default=1000, help="spans a second into each")
    asked.add_argument("--look-ups", type=int, default=500)
    asked.add_argument("--lists", type=int, default=60, help="requests for each filter")
    chosen = asked.parse_args()
    with ExitStack() as stack:
        urls = [stack.enter_context(EmbeddedPostgres(folder)) for folder in chosen.folders]
        sizes = [calls(url) for url in urls]
        samples = [sample_of(url, size) for url, size in zip(urls, sizes, strict=True)]
        at = [stack.enter_context(service(url))[0] for url in urls]
        for one in at:
            stack.enter_context(sending(one["http"], chosen.rate))
        conns = [http.client.HTTPConnection(urlsplit(one["web"]).netloc, timeout=30) for one in at]
        for conn, sample in zip(conns, samples, strict=True):  # plans are made, pages are read
            times(conn, [f"/api/v1/references/{one[0]}" for one in sample[:50]])
        print(f"{'p50 and p99, ms':28}", *(f"{size:>12,} calls" for size in sizes))
        for name, paths in questions(samples, chosen):
            show(name, [in_turn(conns, pair) for pair in zip(*paths, strict=True)])


def calls(url: str) -> int:
    with psycopg.connect(url) as conn:
        return conn.execute("SELECT sum(calls)::bigint FROM error_group_tally").fetchone()[0]


def questions(samples: list[list[tuple[str, str, str]]], chosen):
    """Each question's name and, for each database, the addresses that ask it."""
    dice = random.Random(7)
    for name, form in (("reference, API", "/api/v1/references/{}"), ("reference, page", "/r/{}")):
        yield (
            name,
            [[form.format(dice.choice(of)[0]) for _ in range(chosen.look_ups)] for of in samples],
        )
    narrowed = [filters(dice.choice(of)) for of in samples]
    for name in narrowed[0]:
        paths = [f"/api/v1/errors?{urlencode(queries[name])}" for queries in narrowed]
        yield f"errors, {name}", [[path] * chosen.lists for path in paths]


def in_turn(conns: list[http.client.HTTPConnection], paths: tuple[str, ...]) -> list[float]:
    return [times(conn, [path])[0] for conn, path in zip(conns, paths, strict=True)]


def show(name: str, took: list[list[float]]) -> None:
    columns = [sorted(column) for column in zip(*took, strict=True)]
    told = [f"{statistics.median(of):7.1f} {of[int(len(of) * 0.99)]:7.1f}   " for of in columns]
    print(f"{name:28}", *told, flush=True)


if __name__ == "__main__":
    main()

"""The store's SQL stays within what Citus accepts, so that the same text runs on one machine and on many."""

import ast
import re
from pathlib import Path

import pytest

from toolfault.store import schema, stage

DISTRIBUTED = "tool_call|tool_call_ok|run_event|log_record|reference|error_group|error_group_tally"
#: What Citus 14 refused or got wrong when it was tried, and what to write instead.
REFUSED = {
    r"\bREFERENCES\s+\w+|\bFOREIGN KEY\b": "no foreign keys",
    r"\bCREATE\s+(CONSTRAINT\s+)?TRIGGER\b": "no triggers",
    r"\bAS\s+IDENTITY\b|\b(BIG|SMALL)?SERIAL\b": "ids are made by us",
    r"\bDEFAULT\s+(now|clock_timestamp|gen_random_uuid|random|nextval)\b": "no volatile defaults",
    r"\bCREATE\s+UNIQUE\s+INDEX\b": "unique only by primary key, which holds the distribution column",
    r"\bDETACH\s+PARTITION\b.*\bCONCURRENTLY\b": "drop the partition",
    r"\bGROUPING\s+SETS\b|\bROLLUP\s*\(|\bCUBE\s*\(": "plain GROUP BY",
    r"\bWITH\s+RECURSIVE\b": "no recursion",
    r"\bctid\b": "delete by key or time",
    rf"\bFROM\s+({DISTRIBUTED})\b(?!.*trace_id\s*=).*\bFOR\s+(NO KEY\s+)?(UPDATE|SHARE)\b": "no row locks without the key",
    r"\bSKIP\s+LOCKED\b": "claim by a conditional UPDATE",
    r"\bDO\s+UPDATE\b.*\b(now|clock_timestamp|statement_timestamp|transaction_timestamp)\s*\(": "pass the time",
    r"\bDO\s+UPDATE\b.*\bcurrent_timestamp\b": "pass the time",
    r"\bUPDATE\b.*\bCASE\s+(?!WHEN\b)\w": "CASE WHEN x = v THEN",
    rf"\bUPDATE\s+({DISTRIBUTED})\s+SET\b.*\b(trace_id|fingerprint)\s*=(?=.*\bWHERE\b)(?!.*\bWHERE\b.*\1\s*=)": "keys never change",
    r"\bJOIN\s+reference\b|\breference\b(\s+AS)?(\s+\w+)?\s+JOIN\b": "two statements, one per hop",
}
FOLDERS = (Path(schema.__file__).parent, schema._folder())


def _texts(path):
    """Every string of a module that can be SQL, in one line; what is put into it later is a question mark."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(
                part.value if isinstance(part, ast.Constant) else "?" for part in node.values
            )


def _statements(text):
    words = r"^\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|WITH|COPY|TRUNCATE|LOCK)\b"
    pieces = (" ".join(piece.split()) for piece in text.split(";"))
    return [piece for piece in pieces if re.match(words, piece)]


SQL = sorted(
    {
        (path.name, statement)
        for folder in FOLDERS
        for path in folder.rglob("*.py")
        for text in _texts(path)
        for statement in _statements(text)
    }
    | {
        ("stage.py", " ".join(text.split()))
        for text in (*stage._INSERT.values(), *stage._COPY.values(), stage._MAKE)
    }
)


@pytest.mark.parametrize("pattern", REFUSED)
def test_no_statement_uses_what_citus_refuses(pattern):
    found = [entry for entry in SQL if re.search(pattern, entry[1], re.IGNORECASE)]
    assert not found, REFUSED[pattern]


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE a (b int REFERENCES c)",
        "CREATE TRIGGER t BEFORE INSERT ON a",
        "CREATE TABLE a (id bigint GENERATED ALWAYS AS IDENTITY)",
        "CREATE TABLE a (at timestamptz DEFAULT now())",
        "CREATE UNIQUE INDEX i ON a (b)",
        "ALTER TABLE a DETACH PARTITION b CONCURRENTLY",
        "SELECT a FROM b GROUP BY GROUPING SETS ((a), ())",
        "WITH RECURSIVE a AS (SELECT 1) SELECT 1",
        "DELETE FROM a WHERE ctid = '(0,1)'",
        "SELECT 1 FROM tool_call WHERE tool = 'x' FOR UPDATE",
        "SELECT 1 FROM a FOR UPDATE SKIP LOCKED",
        "INSERT INTO a VALUES (1) ON CONFLICT (a) DO UPDATE SET b = now()",
        "INSERT INTO a VALUES (1) ON CONFLICT (a) DO UPDATE SET b = current_timestamp",
        "UPDATE a SET b = CASE c WHEN 1 THEN 2 END",
        "UPDATE error_group SET fingerprint = '' WHERE tool = 'x'",
        "SELECT 1 FROM reference JOIN tool_call USING (trace_id)",
    ],
)
def test_the_list_catches_what_it_is_there_for(statement):
    assert any(re.search(pattern, statement, re.IGNORECASE) for pattern in REFUSED)


def test_the_statements_of_the_write_path_the_migrations_and_the_look_up_are_all_looked_at():
    files = {name for name, _ in SQL}
    assert {"stage.py", "0001_first_schema.py", "groups.py", "erase.py", "partitions.py"} <= files
    assert len(SQL) > 60

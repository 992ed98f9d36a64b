"""The tables. The migrations make exactly these; a test compares the two.

The same tables work on plain PostgreSQL and distributed by Citus: every key holds the column a
table is distributed and partitioned by, and there is no foreign key, identity, trigger or volatile
default. Columns of eight bytes come first, then smaller ones, then those of variable length.

A key time is the record's own, nanoseconds cut to microseconds. Where no partition has it, the key
time is `UNDATED` and `told_at` keeps the original. `trace_id` and `span_id` are zero bytes where a
record has none.
"""

from toolfault.store.models import counts, records
from toolfault.store.models.columns import DAILY, METADATA, MONTHLY, PARTITION_NAME, UNDATED

__all__ = ["DAILY", "METADATA", "MONTHLY", "PARTITION_NAME", "UNDATED", "counts", "records"]

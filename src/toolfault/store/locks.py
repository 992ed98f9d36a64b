"""Keys of PostgreSQL's advisory locks, once, so that no two jobs share one by accident."""

UPGRADE = 7_105_631  # replicas that start at once upgrade one after the other
MAINTENANCE = 7_105_632  # one replica makes and drops partitions
LABELS = 7_105_633  # a new metric label is admitted by one writer at a time
SLOTS = 7_105_634  # first half of a pair; the second is the slot

"""A role that dashboards read with.

Revision ID: 0002
Revises: 0001
"""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_READABLE = "tool_call, tool_call_all, run_event, error_group, error_group_tally, tool_catalog, label, incident"
# Neither exception details nor tokens. The role cannot log in until somebody gives it a password,
# and one cluster may hold several databases: the role may be there already, or come just now.
_ROLE = f"""
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'toolfault_read') THEN
        BEGIN
            CREATE ROLE toolfault_read NOLOGIN;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL;
        END;
    END IF;
    GRANT SELECT ON {_READABLE} TO toolfault_read;
EXCEPTION WHEN insufficient_privilege THEN
    RAISE NOTICE 'The role toolfault_read, which dashboards read with, was not made: % may not create roles.',
        current_user
    USING HINT = 'Let somebody who may run: CREATE ROLE toolfault_read; GRANT SELECT ON {_READABLE} TO toolfault_read';
END
$$;
"""


def upgrade() -> None:
    op.execute(_ROLE)


def downgrade() -> None:
    raise NotImplementedError("Going back would take dashboards their rights: keep the role.")

"""The log, the sums, the answers that count, and the labels a campaign began with."""

import sqlalchemy as sa
from alembic import op

revision = "1"
down_revision = None

BIG = sa.BigInteger().with_variant(sa.Integer, "sqlite")

SQLITE = """
CREATE TRIGGER log_no_update BEFORE UPDATE ON log
BEGIN SELECT RAISE(ABORT, 'log: what was written stays as it is'); END;;
CREATE TRIGGER log_no_delete BEFORE DELETE ON log
BEGIN SELECT RAISE(ABORT, 'log: what was written stays as it is'); END;;
CREATE TRIGGER labels_no_update BEFORE UPDATE ON labels
BEGIN SELECT RAISE(ABORT, 'labels: what was written stays as it is'); END;;
CREATE TRIGGER labels_no_delete BEFORE DELETE ON labels
BEGIN SELECT RAISE(ABORT, 'labels: what was written stays as it is'); END;;
CREATE TRIGGER labels_once BEFORE INSERT ON labels
WHEN EXISTS (SELECT 1 FROM labels WHERE name = NEW.name)
BEGIN SELECT RAISE(ABORT, 'labels: what was written stays as it is'); END;;
CREATE TRIGGER log_next BEFORE INSERT ON log
WHEN NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM log) OR EXISTS (SELECT 1 FROM log WHERE key = NEW.key)
BEGIN SELECT RAISE(ABORT, 'log: a row follows the last one, under a key of its own'); END
"""
# The last two are asked before INSERT OR REPLACE takes a row out, which asks no trigger on deleting.

POSTGRESQL = """
CREATE FUNCTION never() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%: what was written stays as it is', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;;
CREATE FUNCTION next_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.seq IS DISTINCT FROM (SELECT coalesce(max(seq), 0) + 1 FROM log) THEN
        RAISE EXCEPTION 'log: a row follows the last one' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;;
CREATE TRIGGER log_next BEFORE INSERT ON log FOR EACH ROW EXECUTE FUNCTION next_row();;
CREATE TRIGGER log_never BEFORE UPDATE OR DELETE OR TRUNCATE ON log FOR EACH STATEMENT EXECUTE FUNCTION never();;
CREATE TRIGGER labels_never BEFORE UPDATE OR DELETE OR TRUNCATE ON labels FOR EACH STATEMENT EXECUTE FUNCTION never();;
REVOKE UPDATE, DELETE, TRUNCATE ON log, labels FROM PUBLIC
"""


def upgrade() -> None:
    """Make the tables, and have the database itself refuse what must never be."""
    op.create_table(
        "log",
        sa.Column("seq", BIG, primary_key=True, autoincrement=False),
        sa.Column("line", sa.Text, nullable=False),
        sa.Column("key", sa.Text, unique=True),
        sa.Column("result", sa.Text),
        sa.Column("written", sa.Text, nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
    )
    op.create_table(
        "sums",
        sa.Column("one", sa.Integer, sa.CheckConstraint("one = 1", name="one_row"), primary_key=True),
        sa.Column("spent", BIG, nullable=False),
        sa.Column("reserved", BIG, nullable=False),
        sa.Column("budget", BIG, nullable=False),
        sa.CheckConstraint("spent >= 0 AND reserved >= 0 AND spent + reserved <= budget", name="within_budget"),
    )
    op.create_table(
        "counted",
        sa.Column("lease", BIG, primary_key=True, autoincrement=False),
        sa.Column("item", BIG, nullable=False),
        sa.Column("annotator", sa.Text),
        sa.Column("answer", sa.Integer, nullable=False),
        sa.UniqueConstraint("item", "annotator", name="one_answer_an_item_and_person"),
    )
    op.create_table(
        "labels",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
    op.execute("INSERT INTO sums (one, spent, reserved, budget) VALUES (1, 0, 0, 0)")
    guards = SQLITE if op.get_bind().dialect.name == "sqlite" else POSTGRESQL
    for statement in guards.split(";;"):
        op.get_bind().exec_driver_sql(statement.strip().replace("%", "%%" if guards is POSTGRESQL else "%"))

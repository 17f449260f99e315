"""How the tables of a campaign's database came about, version after version, each in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from relook.errors import BadLog

if TYPE_CHECKING:
    from alembic.config import Config
    from alembic.script import ScriptDirectory
    from sqlalchemy import Connection

NEWEST = "1"
"""The version that this program writes."""

SCRIPTS = "relook:store/migrations"


def version(connection: Connection) -> str | None:
    """Return the version of the tables; None: there are none."""
    from sqlalchemy import inspect, text

    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def is_old(connection: Connection, where: str) -> bool:
    """Say whether the tables are older than this program, or refuse those of a newer one, untouched."""
    found = version(connection)
    if found == NEWEST:
        return False
    if found is not None and found not in [script.revision for script in _scripts().walk_revisions()]:
        raise BadLog(
            f"{where}: tables of version {NEWEST} or older were needed, but {found} came; install a newer relook"
        )
    return True


def migrate(connection: Connection, to: str = "head") -> None:
    """Bring the tables to a version, within the transaction of this connection."""
    from alembic.runtime.environment import EnvironmentContext

    scripts = _scripts()

    def steps(revision: Any, context: object) -> Any:  # noqa: ARG001  # what Alembic calls
        return scripts._upgrade_revs(to, revision)

    with EnvironmentContext(_config(), scripts, fn=steps) as environment:
        environment.configure(connection=connection, transactional_ddl=False)
        environment.run_migrations()


def _scripts() -> ScriptDirectory:
    from alembic.script import ScriptDirectory

    return ScriptDirectory.from_config(_config())


def _config() -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", SCRIPTS)
    config.set_main_option("path_separator", "os")
    return config

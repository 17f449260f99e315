"""What all tests share: where the real data lie, a browser, and how many examples a law is tried on."""

import os
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path

import hypothesis
import pytest

from tests.servers import Cluster, cluster, programs

# Two tests run side by side, and a busy machine is slow where each of them wants every core. Read when numpy is loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parent.parent


def _is_set(name: str) -> bool:
    return os.environ.get(name, "") not in ("", "0")


REQUIRED = {
    fixture: name
    for name, fixtures in (("RELOOK_REQUIRE_DATA", ["data_dir"]), ("RELOOK_REQUIRE_TOOLS", ["strace", "postgres"]))
    for fixture in fixtures
    if _is_set(name)
}
"""Fixtures whose tests must run, each with the variable that says so."""

# A loaded machine is no failure of a law, so there is no deadline and no complaint about slow examples.
_shared = hypothesis.settings(
    deadline=None,
    derandomize="CI" in os.environ,
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.register_profile("laws", _shared, max_examples=500)
hypothesis.settings.register_profile("quick", _shared, max_examples=100)
hypothesis.settings.load_profile("laws")


def data_folder() -> Path:
    """Return where the real data would lie: RELOOK_DATA, else shared/data beside the checkout."""
    return Path(os.environ.get("RELOOK_DATA") or ROOT.parent / "shared" / "data")


def spelled(value: object) -> str:
    """Return how a value is named in the name of a test: alike in every process, so without a function's address."""
    return str(getattr(value, "__name__", value))


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real data; a test that needs it is skipped elsewhere."""
    folder = data_folder()
    if not folder.is_dir():
        pytest.skip(f"real data: no folder {folder}; set RELOOK_DATA to where they lie")
    return folder


@pytest.fixture(scope="session")
def chromium() -> str:
    """The browser's program; a test that draws a page is skipped without one."""
    for name in (os.environ.get("RELOOK_CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome"):
        program = shutil.which(name) if name else None
        if program:
            return program
    pytest.skip("browser: no chromium on the path; install it, or set RELOOK_CHROMIUM to the program")


@pytest.fixture(scope="session")
def strace() -> str:
    """The program that stops others at a call of theirs; a test that needs it is skipped without one."""
    program = shutil.which("strace")
    if program is None:
        pytest.skip("strace: it is not on the path; install it")
    return program


@pytest.fixture(scope="session")
def postgres() -> Iterator[Cluster]:
    """A PostgreSQL server of the tests' own; a test that needs it is skipped where its programs are not."""
    place = programs()
    if place is None:
        pytest.skip("postgres: initdb is not on the path; install PostgreSQL")
    with cluster(place) as server:
        yield server


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn the skip of a test that needs the real data, or a tool, into a failure where those must be there."""
    report = yield
    wanted = [name for fixture, name in REQUIRED.items() if fixture in getattr(item, "fixturenames", ())]
    if wanted and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{wanted[0]} is set, but this test was skipped: {report.longrepr}"
    return report

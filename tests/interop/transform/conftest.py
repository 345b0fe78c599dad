"""The fixture of these tests: the C++ probe. That of tests/interop imports what is not installed here."""

import pathlib
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).parents[1]))

from probe_process import probe_of_session  # pylint: disable=wrong-import-position


@pytest.fixture(scope="session")
def probe():
    yield from probe_of_session()

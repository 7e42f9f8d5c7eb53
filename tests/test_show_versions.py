"""What a report of a problem says."""

from importlib import metadata
from pathlib import Path

import numpy as np

import sklearn_xc


def test_versions_of_the_package_and_what_it_uses(capsys):
    sklearn_xc.show_versions()
    lines = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines())
    assert lines["sklearn_xc"] == sklearn_xc.__version__
    assert lines["numpy"] == np.__version__
    assert lines["scikit-learn"] == metadata.version("scikit-learn")
    assert int(lines["threads"]) >= 1


def test_type_checkers_may_read_the_package():
    assert (Path(sklearn_xc.__file__).parent / "py.typed").is_file()

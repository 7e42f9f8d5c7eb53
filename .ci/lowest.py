"""Print the lowest version of each dependency that pyproject.toml allows, as pip takes them.

With pandas of the tests: a newer one than scikit-learn knows gives it sparse frames that it cannot
read.
"""

import tomllib
from pathlib import Path

project = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text())["project"]
of_tests = project["optional-dependencies"]["test"]
lowest = project["dependencies"] + [each for each in of_tests if each.startswith("pandas")]
print("\n".join(requirement.replace(">=", "==") for requirement in lowest))

"""Print the lowest version of each dependency that pyproject.toml allows, as pip takes them."""

import tomllib
from pathlib import Path

project = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text())["project"]
print("\n".join(requirement.replace(">=", "==") for requirement in project["dependencies"]))

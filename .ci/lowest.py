"""Print the lowest version of each requirement that has one: pyproject.toml's `name>=version` as `name==version`."""

import re
import tomllib

with open("pyproject.toml", "rb") as file:
    project = tomllib.load(file)["project"]
extras = project["optional-dependencies"]
requirements = [
    *project["dependencies"],
    *(entry for name in ("fast", "plot", "ax", "optuna", "ray") for entry in extras[name]),
]
for requirement in requirements:
    found = re.fullmatch(r"([\w.-]+)>=([\w.]+)", requirement)
    if found:
        print(f"{found[1]}=={found[2]}")  # noqa: T201

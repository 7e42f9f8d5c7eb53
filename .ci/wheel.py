"""Check what a wheel holds: the package, with its data, and nothing else."""

import sys
import zipfile

names = zipfile.ZipFile(sys.argv[1]).namelist()
strange = [name for name in names if not name.startswith(("sklearn_xc/", "sklearn_xc-"))]
strange += [name for name in names if "bench" in name or "/test_" in name or "/tests/" in name]
lines = sum(
    zipfile.ZipFile(sys.argv[1]).read(name).count(b"\n") for name in names if name.endswith(".py")
)
print(f"The wheel holds {len(names)} files, {lines:,} lines of Python.")
if strange:
    sys.exit(f"The wheel holds what is not the package: {', '.join(strange)}")

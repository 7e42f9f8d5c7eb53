"""Runs the Python of a page as it stands, and what it has in comments to run first.

::

    python .ci/snippets.py README.md
"""

import re
import sys
from pathlib import Path

BLOCK = r"^<!-- run first\n(.*?)^-->$|^```python\n(.*?)^```$"

for first, code in re.findall(BLOCK, Path(sys.argv[1]).read_text(), re.MULTILINE | re.DOTALL):
    exec(first or code, globals())

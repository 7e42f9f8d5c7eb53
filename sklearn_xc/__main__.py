"""``python -m sklearn_xc``: the command line."""

import sys

from sklearn_xc.command_line import main

if __name__ == "__main__":
    sys.exit(main())

"""``python -m conceptnb`` is ``conceptnb``."""

import sys

from conceptnb.commands.cli import main

if __name__ == "__main__":
    sys.exit(main())

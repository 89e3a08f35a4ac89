"""``python -m leasehold`` is the command ``leasehold``."""

import sys

from leasehold._command import main

if __name__ == "__main__":
    sys.exit(main())

"""`python -m autockpt`."""

import sys

from autockpt.cli import main

sys.exit(main())

"""python -m lib.datasets fetch|list|verify: official downloads, see lib/datasets/fetching."""

import sys

from lib.datasets.fetching.command import main

if __name__ == "__main__":
    sys.exit(main())

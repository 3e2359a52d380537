"""`python -m symgnn` is the command `symgnn`."""

import sys

from symgnn.cli import main

if __name__ == "__main__":
    sys.exit(main())

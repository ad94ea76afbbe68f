"""`python -m symgrad`: what the terminal offers. See `symgrad.terminal`."""

import os
import sys

from symgrad.terminal import main

if __name__ == "__main__":
    # https://no-color.org: any value but the empty one.
    sys.exit(main(sys.argv[1:], colour=sys.stdout.isatty() and not os.environ.get("NO_COLOR")))

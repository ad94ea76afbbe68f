"""`python -m symgrad`: what the terminal offers. See `symgrad.cli`."""

import os
import sys

from symgrad.cli import FAILED, main

if __name__ == "__main__":
    try:
        # https://no-color.org: any value but the empty one.
        colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        code = main(sys.argv[1:], colour=colour)
    except OSError as error:
        if not isinstance(error, BrokenPipeError):  # as of `| head -1`: nobody wants the rest
            sys.stderr.write(f"symgrad: the answer cannot be written: {error}\n")
        code = FAILED
    sys.exit(code)

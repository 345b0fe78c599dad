"""extract.py PAGE.md OUT.cc: writes a page's program, so that the build compiles it."""

import sys
from pathlib import Path

from page import program

if __name__ == "__main__":
    Path(sys.argv[2]).write_text(program(sys.argv[1]), encoding="utf-8")

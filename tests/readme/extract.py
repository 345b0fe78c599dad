"""extract.py README.md OUT.cc: writes README's C++ program, so that the build compiles it.

The program is all ```cpp blocks in order, as a reader would put them together.
"""

import re
import sys
from pathlib import Path


def main(readme, out):
    text = Path(readme).read_text()
    pieces = []
    for match in re.finditer(r"^```cpp\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        line = text.count("\n", 0, match.start(1)) + 1
        pieces.append(f'#line {line} "{readme}"\n{match.group(1)}')
    if not pieces:
        sys.exit(f"{readme} holds no ```cpp block")
    Path(out).write_text("".join(pieces))


if __name__ == "__main__":
    main(*sys.argv[1:])

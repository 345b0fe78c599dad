"""prints.py PROGRAM PAGE.md: whether a page's program prints what the page says.

Numbers with a decimal point may differ in the last digits, as sums do between processors.
"""

import difflib
import re
import subprocess
import sys
import tempfile

from page import output

NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?")
TOLERANCE = 0.005


def same_line(found, expected):
    if NUMBER.sub("#", found) != NUMBER.sub("#", expected):
        return False
    pairs = zip(NUMBER.findall(found), NUMBER.findall(expected), strict=True)
    return all(abs(float(a) - float(b)) <= TOLERANCE * max(1.0, abs(float(b))) for a, b in pairs)


def main(program, page):
    with tempfile.TemporaryDirectory() as directory:
        run = subprocess.run([program], capture_output=True, text=True, timeout=110, check=False,
                             cwd=directory)
    sys.stderr.write(run.stderr)
    if run.returncode != 0:
        print(f"{program} ended with {run.returncode}")
    expected, found = output(page).splitlines(), run.stdout.splitlines()
    same = len(expected) == len(found) and all(map(same_line, found, expected))
    if not same:
        print("\n".join(difflib.unified_diff(expected, found, page, program, lineterm="")))
    return 0 if same and run.returncode == 0 else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

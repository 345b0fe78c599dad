"""prints.py PROGRAM EXPECTED.txt: whether a program prints exactly what the file holds."""

import difflib
import subprocess
import sys
from pathlib import Path


def main(program, expected_path):
    expected = Path(expected_path).read_text(encoding="utf-8")
    run = subprocess.run([program], capture_output=True, text=True, timeout=50, check=False)
    sys.stdout.writelines(difflib.unified_diff(expected.splitlines(keepends=True),
                                               run.stdout.splitlines(keepends=True),
                                               expected_path, program))
    sys.stderr.write(run.stderr)
    if run.returncode != 0:
        print(f"{program} ended with {run.returncode}")
    return 0 if run.returncode == 0 and run.stdout == expected else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""The source tree, as the checks see it."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
# String literals first, so that a // or /* inside one does not open a comment.
_COMMENT = re.compile(
    r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)


def sources(folder, suffixes=(".h", ".cc")):
    """The sources below `folder` of the tree, as (path from `folder`'s root, text)."""
    root = Path(folder)
    return sorted(
        (path.relative_to(root), path.read_text())
        for path in root.rglob("*")
        if path.suffix in suffixes and "build" not in path.relative_to(root).parts
    )


def includes(text):
    """(line number, True where in quotes, included path) of each #include."""
    return [
        (text.count("\n", 0, match.start(2)) + 1, match.group(1) == '"', match.group(2))
        for match in _INCLUDE.finditer(text)
    ]


def without_comments(text):
    """The text with its comments blanked and its lines kept."""

    def blank(match):
        return match.group(1) or re.sub(r"[^\n]", " ", match.group(0))

    return _COMMENT.sub(blank, text)


def is_test(path):
    return path.stem.endswith("_test")


def report(offences):
    """Prints the offences; the exit status that a check ends with."""
    for offence in offences:
        print(offence)
    print(f"{len(offences)} offences" if offences else "clean")
    return 1 if offences else 0


def run(check):
    sys.exit(report(check(ROOT)))

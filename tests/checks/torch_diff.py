"""docs/fit.md shows how a program of libtorch becomes one that trains by fit. --write makes it so.

The block is the difference of the two programs of examples/torch_fit, whole, so that a reader sees what
stays as well.
"""

import difflib
import sys
from pathlib import Path

import tree

PAGE = "docs/fit.md"
BEFORE = "examples/torch_fit/before.cc"
AFTER = "examples/torch_fit/after.cc"
BEGIN, END = "```diff\n", "```\n"


def block(root):
    before, after = ((root / path).read_text().splitlines() for path in (BEFORE, AFTER))
    lines = list(difflib.unified_diff(before, after, lineterm="", n=len(before)))[3:]
    return "".join(line.rstrip() + "\n" for line in lines)


def shown(page):
    begin = page.index(BEGIN) + len(BEGIN)
    return begin, page.index(END, begin)


def check(root):
    page = (root / PAGE).read_text()
    if BEGIN not in page:
        return [f"{PAGE} shows no difference of {BEFORE} and {AFTER}"]
    begin, end = shown(page)
    if page[begin:end] == block(root):
        return []
    return [f"{PAGE} shows another difference than that of {BEFORE} and {AFTER}; "
            "run tests/checks/torch_diff.py . --write"]


def main(root=tree.ROOT, *flags):
    root = Path(root)
    if "--write" in flags:
        page = (root / PAGE).read_text()
        begin, end = shown(page)
        (root / PAGE).write_text(page[:begin] + block(root) + page[end:])
    if offences := check(root):
        sys.exit("\n".join(offences))
    print("clean")


if __name__ == "__main__":
    main(*sys.argv[1:])

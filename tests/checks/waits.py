"""Every wait of a parameter server cluster has a deadline. A wait without one must be in waits.txt, with
what bounds it."""

import pathlib
import re

import tree

FOLDER = "cohort/parameter_server"
# Of conditions, threads and futures; wait_for and wait_until have a deadline.
WAIT = re.compile(r"\b\w+(?:\.|->)wait\(|\b\w*(?:thread|future|answer|promise)\w*(?:\.|->)(?:join|get)\(\)")


def bounded():
    rows = {}
    for line in (pathlib.Path(__file__).parent / "waits.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        where, wait, why = (part.strip() for part in line.split("|"))
        assert why, line
        rows[(where, wait)] = why
    return rows


def check(root):
    listed = bounded()
    seen = set()
    offences = []
    for path, text in tree.sources(root / FOLDER):
        where = f"{FOLDER}/{path}"
        if where.endswith("_test.cc") or "/testing_" in where:
            continue
        for number, line in enumerate(tree.without_comments(text).splitlines(), start=1):
            for match in WAIT.finditer(line):
                key = (where, match.group(0).rstrip("()"))
                seen.add(key)
                if key not in listed:
                    offences.append(f"{where}:{number}: {match.group(0)} has no deadline; give it one, or "
                                    "list it in tests/checks/waits.txt with what bounds it")
    for where, wait in listed:
        if (root / where).exists() and (where, wait) not in seen:
            offences.append(f"tests/checks/waits.txt: {where} has no {wait} any more")
    return offences


if __name__ == "__main__":
    tree.run(check)

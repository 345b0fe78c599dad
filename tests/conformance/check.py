"""Checks rows.txt: its form, that every test it names exists, that no section lost rows.

check.py ROWS --tests BUILD_DIR     with ctest's own list of the build's tests
check.py --self-test
"""

import argparse
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

_TEST = re.compile(r"[A-Za-z]\w*\.[A-Za-z]\w*")
_STATUS = {
    "test": re.compile(rf"test {_TEST.pattern}(?:, {_TEST.pattern})*"),
    "issue": re.compile(r"issue [1-9]\d* \S.*"),
    "later": re.compile(r"later \S.*"),
    "out": re.compile(r"out \S.*"),
}


def check(text, known_tests):
    """(problems, Counter of rows by the kind of their first status)."""
    problems = []
    rows = Counter()
    kinds = Counter()
    keys = set()
    wanted = dict(re.findall(r"(\d+\.\d+)=(\d+)", next(
        (line for line in text.splitlines() if line.startswith("# rows: ")), "")))
    if not wanted:
        problems.append("the header names no number of rows (# rows: 1.1=15 ...)")
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = [field.strip() for field in line.split("|")]
        if len(fields) != 4 or not all(fields):
            problems.append(f"line {number}: not SECTION | area | feature | STATUS: {line}")
            continue
        section, area, feature, statuses = fields
        rows[section] += 1
        if section not in wanted:
            problems.append(f"line {number}: section {section} has no number in the header")
        if (section, area, feature) in keys:
            problems.append(f"line {number}: the row '{feature}' stands twice in {section}")
        keys.add((section, area, feature))
        for position, status in enumerate(statuses.split(" ; ")):
            kind = status.split(" ", 1)[0]
            if kind not in _STATUS or not _STATUS[kind].fullmatch(status):
                problems.append(f"line {number}: '{status}' is neither a test, an issue nor a reason")
                continue
            if position == 0:
                kinds[kind] += 1
            if kind == "test":
                problems += [f"line {number}: there is no test '{name}'"
                             for name in _TEST.findall(status[len("test "):])
                             if name not in known_tests]
    for section, count in wanted.items():
        if rows[section] < int(count):
            problems.append(f"section {section} has {rows[section]} rows of {count}")
    return problems, kinds


def without_parameters(name):
    """Suite.Name of Instance/Suite.Name/parameter and Suite/0.Name: rows name all of a test's runs."""
    suite, _, test = name.partition(".")
    parts = suite.split("/")
    return f"{parts[0] if parts[-1].isdigit() else parts[-1]}.{test.split('/')[0]}"


def tests_of(build):
    listed = subprocess.run(["ctest", "--show-only=json-v1"], cwd=build, capture_output=True,
                            text=True, check=True)
    return {without_parameters(test["name"]) for test in json.loads(listed.stdout)["tests"]}


def self_test():
    """Each way for a row to be wrong must be found."""
    head = "# rows: 1.1=1\n"
    known = {"A.B", "A.C"}
    good = ["test A.B", "test A.B, A.C", "issue 3 checkpoints", "later clusters",
            "out no hardware", "test A.B ; issue 5 the rest"]
    bad = ["test A.Gone", "test", "", "maybe", "issue checkpoints", "issue 3", "later", "out",
           "test A.B ;", "test A.B, ", "test ?guess"]
    for status in good:
        problems, _ = check(f"{head}1.1 | area | feature | {status}\n", known)
        assert not problems, (status, problems)
    for status in bad:
        problems, _ = check(f"{head}1.1 | area | feature | {status}\n", known)
        assert problems, status
    for name in ("Suite.Name", "Runs/Suite.Name/0", "Suite/0.Name", "Runs/Suite.Name/a_b"):
        assert without_parameters(name) == "Suite.Name", name
    row = "1.1 | area | feature | out reason\n"
    assert check(head, known)[0], "a lost row"
    assert check(row, known)[0], "a header without counts"
    assert check(head + row + row, known)[0], "a row twice"
    assert check(f"{head}{row}1.9 | area | feature | out reason\n", known)[0], "an unknown section"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="?")
    parser.add_argument("--tests", metavar="BUILD_DIR")
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        self_test()
        return 0
    problems, kinds = check(Path(arguments.rows).read_text(), tests_of(arguments.tests))
    for problem in problems:
        print(problem)
    print(", ".join(f"{count} rows: {kind}" for kind, count in sorted(kinds.items())))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

"""Checks rows.txt: its form, that every test it names exists, that no section lost rows.

check.py ROWS --sources LIST     LIST: a file with the sources of all test programs, a line each
check.py --self-test
"""

import argparse
import re
import sys
from collections import Counter
from pathlib import Path

_TEST = re.compile(r"[A-Za-z]\w*\.[A-Za-z]\w*")
_DEFINITION = re.compile(r"^(?:TYPED_)?TEST(?:_[FP])?\(\s*(\w+),\s*(?!DISABLED_)(\w+)\)", re.MULTILINE)
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


def names_in(source):
    """The tests that a source defines. Rows name all of a test's parameters and types at once."""
    return {".".join(names) for names in _DEFINITION.findall(source)}


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
    source = ("TEST(Plain, One) {\nTEST_F(Fixture,\n       Two) {\nTYPED_TEST(Types, Three) {\n"
              "TEST_P(Parameters, Four) {\n// TEST(No, Comment) {\nTEST(Not, DISABLED_Now) {\n")
    assert names_in(source) == {"Plain.One", "Fixture.Two", "Types.Three", "Parameters.Four"}
    row = "1.1 | area | feature | out reason\n"
    assert check(head, known)[0], "a lost row"
    assert check(row, known)[0], "a header without counts"
    assert check(head + row + row, known)[0], "a row twice"
    assert check(f"{head}{row}1.9 | area | feature | out reason\n", known)[0], "an unknown section"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="?")
    parser.add_argument("--sources", metavar="LIST")
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        self_test()
        return 0
    sources = Path(arguments.sources).read_text().splitlines()
    known_tests = set().union(*(names_in(Path(source).read_text()) for source in sources))
    problems, kinds = check(Path(arguments.rows).read_text(), known_tests)
    for problem in problems:
        print(problem)
    print(", ".join(f"{count} rows: {kind}" for kind, count in sorted(kinds.items())))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

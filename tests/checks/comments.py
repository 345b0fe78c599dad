"""Comments are sentences with a subject, in lines of 100 columns at most.

A comment that opens with one of these words leaves out what it is about. Code samples in comments, which are indented,
may be wider. Tests are exempt.
"""

import re

import tree

WITHOUT_SUBJECT = set("Of As By Those That Where Which Who With Under Between Behind Until Without From".split())
COLUMNS = 100

_COMMENT = re.compile(r"\s*//[/!]?( *)(\S*)")


def check(root):
    offences = []
    for path, text in tree.sources(root / "cohort"):
        if tree.is_test(path) or path.stem.startswith(("testing_", "test_")):
            continue
        inside = False
        for number, line in enumerate(text.splitlines(), start=1):
            match = _COMMENT.match(line)
            if match and len(line) > COLUMNS and len(match.group(1)) < 3:
                offences.append(f"cohort/{path}:{number}: a comment of {len(line)} columns, {COLUMNS} at most")
            if match and not inside and match.group(2).strip(",:") in WITHOUT_SUBJECT:
                offences.append(f"cohort/{path}:{number}: the comment opens with '{match.group(2)}': say first what it "
                                "is about")
            inside = bool(match)
    return offences


if __name__ == "__main__":
    tree.run(check)

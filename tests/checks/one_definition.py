"""A class has one definition: no two files of cohort/ define classes of one name in one namespace.

Classes of unnamed namespaces belong to their file, and are exempt; so are tests and what helps them, which are no
part of the library. Two definitions would link, and each object would get the functions of either.
"""

import collections
import re

import tree

_TOKEN = re.compile(
    r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\''
    r'|\bnamespace\s+(?P<space>[\w:]*)\s*\{'
    r'|\b(?:class|struct|union|enum(?:\s+class)?)\s+(?:[A-Z_]{2,}(?:\([^)]*\))?\s+|alignas\([^)]*\)\s+|\[\[[^\]]*\]\]\s*)*'
    r'(?P<name>[A-Za-z_]\w*)(?:\s+final)?(?:\s*:(?!:)[^;{}()]*)?\s*\{'
    r'|(?P<open>\{)|(?P<close>\})')


def is_exempt(path):
    return tree.is_test(path) or path.stem.startswith(("testing_", "test_")) or path.parts[0] == "testing"


def definitions(text):
    """(line, qualified name) of each class that is defined in named namespaces, and in no function or class."""
    scopes = []  # names of namespaces; None for another scope
    for match in _TOKEN.finditer(text):
        if match.group("space") is not None:
            scopes.append(match.group("space") or "(unnamed)")
        elif match.group("name"):
            at_top = all(scope not in (None, "(unnamed)") for scope in scopes)
            if at_top:
                line = text.count("\n", 0, match.start()) + 1
                yield line, "::".join([*scopes, match.group("name")])
            scopes.append(None)
        elif match.group("open"):
            scopes.append(None)
        elif match.group("close") and scopes:
            scopes.pop()


def check(root):
    places = collections.defaultdict(list)
    for path, text in tree.sources(root / "cohort"):
        if is_exempt(path):
            continue
        for line, name in definitions(tree.without_comments(text)):
            places[name].append((path, line))
    offences = []
    for name, where in sorted(places.items()):
        if len({path for path, _ in where}) < 2:
            continue
        listed = ", ".join(f"cohort/{path}:{line}" for path, line in where)
        offences.append(f"{name} is defined in several files: {listed}")
    return offences


if __name__ == "__main__":
    tree.run(check)

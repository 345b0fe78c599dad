"""Sources that the documents name exist: docs/, README.md, CONTRIBUTING.md and the READMEs of the folders.

A name in backticks that ends in .h or .cc must be the end of some source's path.
"""

import re

import tree

_NAME = re.compile(r"`(\w[\w./-]*\.(?:h|cc))`")
_EXAMPLES = {"x.h", "x.cc", "x_test.cc", "main.cc"}
_FOREIGN = ("torch/", "ATen/", "c10/")
_FOLDERS = ("cohort", "tests", "tools", "examples", "bench")
_FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def check(root):
    documents = [root / "README.md", root / "CONTRIBUTING.md"]
    documents += sorted((root / "docs").rglob("*.md")) + sorted((root / "cohort").rglob("README.md"))
    known = {f"/{folder}/{path}" for folder in _FOLDERS for path, _ in tree.sources(root / folder)}
    offences = []
    for document in documents:
        if not document.is_file():
            continue
        text = _FENCE.sub(lambda block: re.sub(r"[^\n]", " ", block.group(0)), document.read_text())
        for match in _NAME.finditer(text):
            name = match.group(1)
            if name.startswith(_FOREIGN) or name in _EXAMPLES:
                continue
            if not any(path.endswith(f"/{name}") for path in known):
                line = text.count("\n", 0, match.start()) + 1
                offences.append(f"{document.relative_to(root)}:{line}: `{name}` does not exist")
    return offences


if __name__ == "__main__":
    tree.run(check)

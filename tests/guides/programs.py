"""programs.py OUT.cc PAGE.md...: the whole programs (with a main) of pages, as one that runs them all.

Each has a namespace of its own: pages may use the same names.
"""

import re
import sys
from pathlib import Path

from page import blocks


def main(out, *pages):
    pieces, names, includes = [], [], {"#include <iostream>": None}
    for page in pages:
        for body, line, _ in blocks(page, "cpp"):
            if "int main() {" not in body:
                continue
            name = f"program_{len(pieces)}"
            # What needs its launcher, or files that a reader brings, is compiled, and not run.
            in_cluster = "int main() {\n  return tf::run_program(" in body
            alone = not in_cluster and "MNIST(" not in body
            result = "[[maybe_unused]] static " + ("int" if in_cluster else "void")
            names += [name] * alone
            includes |= dict.fromkeys(re.findall(r"^#include .*", body, re.M))
            renamed = re.sub(r"^#include .*", "", body, flags=re.M)
            renamed = renamed.replace("int main() {", f"{result} {name}() {{")
            pieces.append(f'namespace of_{name} {{\n#line {line} "{page}"\n{renamed}}}\n')
    calls = "".join(f"  of_{name}::{name}();\n" for name in names)
    if len(pieces) < len(pages):
        sys.exit("a page has no program")
    pieces.append(f"int main() try {{\n{calls}}} catch (const cohort::Error& error) {{\n"
                  "  std::cerr << error.what() << std::endl;\n  return 1;\n}\n")
    Path(out).write_text("\n".join(includes) + "\n" + "".join(pieces), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])

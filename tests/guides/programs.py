"""programs.py OUT.cc PAGE.md...: the whole programs (with a main) of pages, as one that runs them all."""

import sys
from pathlib import Path

from page import blocks


def main(out, *pages):
    pieces, names = [], []
    for page in pages:
        for body, line, _ in blocks(page, "cpp"):
            if "int main() {" not in body:
                continue
            names.append(f"program_{len(names)}")
            renamed = body.replace("int main() {", f"static void {names[-1]}() {{")
            pieces.append(f'#line {line} "{page}"\n{renamed}')
    calls = "".join(f"  {name}();\n" for name in names)
    if len(names) < len(pages):
        sys.exit("a page has no program")
    pieces.append(f"int main() try {{\n{calls}}} catch (const tf::Error& error) {{\n"
                  "  std::cerr << error.what() << std::endl;\n  return 1;\n}\n")
    Path(out).write_text("#include <iostream>\n" + "".join(pieces), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])

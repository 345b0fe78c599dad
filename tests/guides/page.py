"""What docs/guides/PAGE.md says in its blocks.

The first ```cpp block is what its program begins with; the others are parts of main, in order, each
in braces of its own, or in those of the one before where <!-- continues --> stands before it. The
```text blocks are what the program prints.
"""

import re
from pathlib import Path

BLOCK = re.compile(r"^(?P<continues><!-- continues -->\n)?```(?P<kind>cpp|text)\n(?P<body>.*?)^```$",
                   re.MULTILINE | re.DOTALL)


def blocks(page, kind):
    text = Path(page).read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        if match["kind"] == kind:
            line = text.count("\n", 0, match.start("body")) + 1
            yield match["body"], line, bool(match["continues"])


def program(page):
    beginning, *snippets = blocks(page, "cpp")
    pieces = [f'#line {beginning[1]} "{page}"\n{beginning[0]}', "int main() try {\n"]
    for index, (body, line, continues) in enumerate(snippets):
        if index > 0 and not continues:
            pieces.append("}\n")
        if not continues:
            pieces.append("{\n")
        pieces.append(f'#line {line} "{page}"\n{body}')
    pieces.append("}\n} catch (const tf::Error& error) {\n"
                  "  std::cerr << error.what() << std::endl;\n  return 1;\n}\n")
    return "".join(pieces)


def output(page):
    return "".join(body for body, _, _ in blocks(page, "text"))

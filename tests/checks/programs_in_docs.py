"""The C++ of the docs compiles with the includes that stand there.

Each ```cpp block with a main is compiled alone, as a reader would paste it. All other blocks of a page are
parts of functions, compiled together: behind the includes and aliases of the page's own blocks, and with
what the page says in a comment that readers do not see, from there on:

    <!-- given: extern tf::Tensor prices; -->

Names that every page takes for granted (a dataset, a model, a batch) are in examples_in_comments.h. A part
may leave out what examples in comments may. <!-- continues --> before a block makes it go on with the
names of the one before. Guides and README are programs of their own, which the build compiles.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import examples_in_comments
import tree

sys.path.insert(0, str(tree.ROOT / "tests/guides"))
from page import blocks  # noqa: E402

PRELUDE = examples_in_comments.PRELUDE
WRITTEN_BY_A_TOOL = "reference.md"
_GIVEN = re.compile(r"^<!-- given: (.*?) ?-->$", re.MULTILINE | re.DOTALL)
_BEGINNING = re.compile(r"^(#include .*|namespace \w+ = [\w:]+;.*|using [\w:]+;.*|)\n", re.MULTILINE)


def is_program(body):
    return "int main(" in body


def divided(body):
    """(its includes and aliases, the rest with its lines kept) of a block."""
    lines = body.splitlines(keepends=True)
    beginning = [line for line in lines if _BEGINNING.fullmatch(line) and line.strip()]
    return "".join(beginning), "".join("\n" if line in beginning else line for line in lines)


def parts(path, name):
    """One source with all parts of a page; None if it has none."""
    text = path.read_text(encoding="utf-8")
    includes, functions, given = [], [], []
    found = [(match.start(), "given", match.group(1)) for match in _GIVEN.finditer(text)]
    places = {text.count("\n", 0, place) + 1: what for place, _, what in found}
    for body, line, continues in blocks(path, "cpp"):
        if is_program(body):
            continue
        beginning, rest = divided(body)
        includes += re.findall(r"^#include .*", beginning, re.MULTILINE)
        given += re.findall(r"^(?:namespace|using) .*", beginning, re.MULTILINE)
        for place in [place for place in places if place < line]:
            what = places.pop(place)
            includes += re.findall(r"^ *#include .*", what, re.MULTILINE)
            given.append(re.sub(r"^ *#include .*", "", what, flags=re.MULTILINE))
        code = "\n".join(map(examples_in_comments.completed, rest.split("\n")))
        placed = f'#line {line} "{name}"\n{code}\n'
        if continues:
            functions[-1] = functions[-1].removesuffix("}}}\n") + placed + "}}}\n"
        else:
            # Aliases of namespaces may stand in functions, so that each has those above it.
            context = "\n".join(given)
            functions.append(f"int part_{len(functions)}() {{ EXAMPLE_NAMES {{\n{context}\n{{\n"
                             f"{placed}}}}}}}\n")
    if not functions:
        return None
    includes = "\n".join(dict.fromkeys(includes))
    return (f'#include <cohort/cohort.h>\n{includes}\n#include "{PRELUDE}"\n'
            "using namespace cohort::in_examples;\n" + "".join(functions))


def collect(root):
    """[(name, source)] of all programs and of the parts of each page."""
    sources = []
    for path in sorted((root / "docs").glob("*.md")):
        if path.name == WRITTEN_BY_A_TOOL:
            continue
        name = str(path.relative_to(root))
        sources += [(f"{name}:{line}", f'#line {line} "{name}"\n{body}')
                    for body, line, _ in blocks(path, "cpp") if is_program(body)]
        if source := parts(path, name):
            sources.append((name, source))
    return sources


def compile_source(command, directory, name, source):
    """What is wrong with it, or None."""
    if "#include <cohort/cohort.h>" not in source and "-include" in command:
        at = command.index("-include")  # which would hide that it is missing
        command = command[:at] + command[at + 2:]
    with tempfile.NamedTemporaryFile("w", suffix=".cc") as file:
        file.write(source)
        file.flush()
        done = subprocess.run([*command, "-fsyntax-only", "-w", file.name], cwd=directory,
                              capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else f"{name} does not compile as it stands:\n{done.stderr}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compile-commands", required=True, type=Path)
    parser.add_argument("pages", nargs="*", help="words that names must have; default: all pages")
    arguments = parser.parse_args()
    command, directory = examples_in_comments.compiler_command(arguments.compile_commands)
    command = examples_in_comments.without_stale_header(command, tree.ROOT)
    sources = [(name, source) for name, source in collect(tree.ROOT)
               if not arguments.pages or any(word in name for word in arguments.pages)]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        found = list(pool.map(lambda one: compile_source(command, directory, *one), sources))
    print(f"{len(sources)} sources")
    return tree.report([offence for offence in found if offence])


if __name__ == "__main__":
    sys.exit(main())

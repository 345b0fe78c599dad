"""The examples in the comments of public headers compile.

A public header is one that <cohort/cohort.h> reaches. Its example is code in a comment, indented by
three blanks or more, in the header's opening comment; further down, where it ends with a semicolon.
Each becomes the body of a function in its header's namespace. It may leave out, as "...", a statement,
a body ({ ... }) or what is in braces ({...}). What an example takes for granted (a dataset, a model,
a batch) is declared in examples_in_comments.h; what only one header's examples do, and the headers
whose examples cannot be compiled alone, in examples_in_comments.txt.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import includes
import tree

PRELUDE = Path(__file__).with_suffix(".h")
SPECIAL = Path(__file__).with_suffix(".txt")
UNITS = 4  # translation units: each costs the start of a compiler

_EXAMPLE_LINE = re.compile(r"\s*//   (.*)")
_EMPTY_LINE = re.compile(r"\s*//\s*")
_LITERAL_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])+\'|//.*')
# The namespace in which the headers of a folder declare their names; elsewhere it is cohort.
_NAMESPACES = {"cohort/data": "cohort::data", "cohort/optim": "cohort::optim",
               "cohort/train": "cohort::train", "cohort/distribute": "cohort::distribute",
               "cohort/keras/layers": "cohort::keras::layers", "cohort/keras": "cohort::keras"}


def blocks(text):
    """The indented blocks of comments, as [(line number, code)] each, with what precedes them."""
    found = []
    block = []
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        match = _EXAMPLE_LINE.fullmatch(line)
        if match:
            block.append((number, match.group(1)))
        elif block and _EMPTY_LINE.fullmatch(line):
            block.append((number, ""))
        elif block:
            while not block[-1][1]:
                block.pop()
            found.append(block)
            block = []
    return found


def without_literals(line):
    return _LITERAL_OR_COMMENT.sub("", line)


def examples(text):
    """The blocks that are code: those of the opening comment, and those that end as code does."""
    opening = text.find("#pragma once")
    first_lines = text.count("\n", 0, opening) if opening >= 0 else 0
    return [block for block in blocks(text)
            if block[0][0] <= first_lines or without_literals(block[-1][1]).rstrip().endswith(";")]


def completed(line):
    """The line with what it leaves out: a statement, a body, a list in braces."""
    code, comment = line, ""
    match = re.search(r'^((?:"(?:\\.|[^"\\])*"|[^"])*?)(//.*)$', line)
    if match:
        code, comment = match.groups()
    code = re.sub(r"\{ ?\.\.\. ?\}", "{}", code)
    code = re.sub(r"^(\s*)\.\.\.\s*$", r"\1;", code)
    code = re.sub(r"\)(\s*)\.\.\.\s*$", r")\1{}", code)
    return code + comment


def read_special(text):
    """{header: (why it is left out or None, declarations)}."""
    special = {}
    header = None
    for line in text.splitlines():
        if line.startswith("#") or not line.strip():
            continue
        if not line[0].isspace():
            header, _, why = line.partition(" is left out: ")
            special[header] = [why.strip() or None, []]
        else:
            special[header][1].append(line.strip())
    return special


def namespace_of(header):
    return next((namespace for folder, namespace in _NAMESPACES.items()
                 if header.startswith(folder + "/")), "cohort")


def balance(block):
    code = "".join(without_literals(line) for _, line in block)
    return all(code.count(a) == code.count(b) for a, b in ("{}", "()", "[]"))


def source_of(header, number, block, declarations):
    """A function whose body is the example."""
    internal = "using namespace cohort::internal;"
    lines = [f"namespace {namespace_of(header)} {{",
             f"void example_{number}() {{ using namespace cohort::in_examples; {internal}",
             "EXAMPLE_NAMES", *declarations, "{"]
    lines.append(f'#line {block[0][0]} "{header}"')
    lines += [completed(line) for _, line in block]
    lines += ["}", "}", "}"]
    return "\n".join(lines) + "\n"


def collect(root, special):
    """(offences, [source of an example])."""
    public = sorted(includes.public_headers(root))
    offences = [f"{SPECIAL.name}: {header} is no public header"
                for header in special if header not in public]
    sources = []
    for header in public:
        why, declarations = special.get(header, (None, []))
        if why:
            continue
        for block in examples((root / header).read_text()):
            if not balance(block):
                offences.append(f"{header}:{block[0][0]}: the example has brackets that do not "
                                "match, or its lines were run together")
                continue
            sources.append(source_of(header, len(sources), block, declarations))
    return offences, sources


def compiler_command(compile_commands):
    """How the programs in examples/ are compiled, up to the name of the source: if there are any, those
    with the precompiled header."""
    entries = json.loads(compile_commands.read_text())
    entries.sort(key=lambda entry: "-include" not in entry["command"])
    for entry in entries:
        if "/examples/" in entry["file"] and " -c " in entry["command"]:
            words = entry["command"].split()
            start = next(i for i, word in enumerate(words) if re.search(r"(\+\+|g\+\+-\d+)$", word))
            end = words.index("-c")
            kept = [word for word in words[start:end] if word not in ("-Werror", "-Winvalid-pch")]
            output = kept.index("-o")
            del kept[output:output + 2]
            return kept, entry["directory"]
    raise SystemExit(f"{compile_commands} has no program of examples/")


def without_stale_header(command, root):
    """The command without a precompiled header that is older than a header of the tree."""
    if "-include" not in command:
        return command
    at = command.index("-include")
    precompiled = Path(command[at + 1] + ".gch")
    newest = max((root / header).stat().st_mtime for header in includes.public_headers(root))
    if precompiled.is_file() and precompiled.stat().st_mtime >= newest:
        return command
    return command[:at] + command[at + 2:]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compile-commands", required=True, type=Path)
    arguments = parser.parse_args()
    command, directory = compiler_command(arguments.compile_commands)
    command = without_stale_header(command, tree.ROOT)

    offences, sources = collect(tree.ROOT, read_special(SPECIAL.read_text()))

    def compile_unit(unit):
        with tempfile.NamedTemporaryFile("w", suffix=".cc") as file:
            file.write(f'#include <cohort/cohort.h>\n#include "{PRELUDE}"\n' + "\n".join(unit))
            file.flush()
            done = subprocess.run([*command, "-fsyntax-only", "-w", file.name], cwd=directory,
                                  capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return None
        return ("an example in a comment does not compile as it stands; correct it, or declare what "
                f"it takes for granted in tests/checks/{PRELUDE.name} or {SPECIAL.name}:\n"
                + done.stderr)

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        units = [sources[i::UNITS] for i in range(UNITS)]
        offences += [found for found in pool.map(compile_unit, units) if found]
    print(f"{len(sources)} examples")
    return tree.report(offences)


if __name__ == "__main__":
    sys.exit(main())

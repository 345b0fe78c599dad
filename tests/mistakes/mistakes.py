"""What newcomers write first compiles, or the compiler says what to do at the line of the mistake.

Each .cc here is such a program. Its line `// EXPECT: compiles` or `// EXPECT: TEXT | TEXT` says which;
of several texts, for several compilers, one must be in an error (after WARNS, in a warning). The
line marked `// here` must be named before the tenth line of what the compiler prints.
"""

import argparse
import json
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
LINES = 10


def user_command(build, compiler):
    """The command that compiles a program of a user, with the precompiled header where there is one."""
    entries = json.loads((build / "compile_commands.json").read_text())
    programs = [entry for folder in ("cohort_precompiled_user.dir", "readme.dir")
                for entry in entries
                if folder in entry["file"] and "-x c++-header" not in entry["command"]]
    words = shlex.split(programs[0]["command"])
    words = words[words.index(compiler):]
    output = words.index("-o")
    del words[output:output + 2]
    source = words.index("-c")
    del words[source:source + 2]
    words = [word for word in words if word != "-Werror"]  # a warning is none of these errors
    return [*words, "-fsyntax-only", "-fdiagnostics-color=never", f"-I{HERE}"]


def expectation(path):
    """(texts, whether they are a warning's, number of the marked line), without texts: it compiles."""
    text = path.read_text()
    expected = re.search(r"^// EXPECT: (.*)$", text, re.MULTILINE).group(1)
    marked = [i for i, line in enumerate(text.split("\n"), 1) if line.endswith("// here")]
    if expected == "compiles":
        return [], False, None
    texts = [each.strip() for each in expected.split(" | ")]
    warns = all(each.startswith("WARNS ") for each in texts)
    return [each.removeprefix("WARNS ") for each in texts], warns, marked[0]


def offence(path, command):
    """What is wrong with the compiler's words on a program, or None."""
    done = subprocess.run([*command, str(path)], capture_output=True, text=True, check=False)
    printed = done.stderr.split("\n")
    texts, warns, marked = expectation(path)
    if not texts or warns:
        if done.returncode != 0:
            return f"{path.name} does not compile:\n{done.stderr[:4000]}"
        if not texts:
            return None
    elif done.returncode == 0:
        return f"{path.name} compiles; expected an error with one of {texts}"
    kind = "warning:" if warns else "error:"
    if not any(text in line for text in texts for line in printed if kind in line or text in line):
        return f"{path.name}: none of {texts} in\n{done.stderr[:4000]}"
    if not any(f"{path.name}:{marked}:" in line for line in printed[:LINES]):
        first = [line for line in printed[:LINES]]
        return (f"{path.name}: line {marked} is not named before line {LINES} of\n"
                + "\n".join(first))
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, type=Path)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("programs", nargs="*", help="default: all")
    arguments = parser.parse_args()
    command = user_command(arguments.build, arguments.compiler)
    programs = [HERE / name for name in arguments.programs] or sorted(HERE.glob("*.cc"))
    with ThreadPoolExecutor(2) as pool:
        offences = [each for each in pool.map(lambda path: offence(path, command), programs) if each]
    print(f"{len(programs)} programs, {len(offences)} offences")
    for each in offences:
        print(each)
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())

"""Each header of cohort/ compiles on its own.

Where x.cc stands beside x.h, x.cc includes it first (includes.py holds that), and the build without
precompiled headers has compiled it. Left are headers without a source; these are compiled here.
"""

import argparse
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import tree


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--includes", required=True, help="libtorch's include folders, by ;")
    parser.add_argument("--generated", required=True, help="the build's own include folder")
    arguments = parser.parse_args()

    command = [arguments.compiler, "-std=c++20", "-fsyntax-only", "-x", "c++", "-Wall", "-Wextra",
               "-Wno-unused-parameter", "-DAT_PER_OPERATOR_HEADERS", f"-I{tree.ROOT}",
               f"-I{arguments.generated}"]
    # Naming /usr/include would take it out of its place in the compiler's own order.
    command += [f"-isystem{folder}" for folder in arguments.includes.split(";")
                if folder not in ("", "/usr/include")]
    if "clang" in os.path.basename(arguments.compiler):
        command += ["-include", "ATen/core/ivalue.h"]

    def compile_header(header):
        text = f'#include "{header}"\n#include "{header}"\n'
        done = subprocess.run([*command, "-"], input=text, capture_output=True, text=True,
                              check=False)
        return f"{header} does not compile on its own:\n{done.stderr}" if done.returncode else None

    headers = [f"cohort/{path}" for path, _ in tree.sources(tree.ROOT / "cohort", (".h",))
               if not (tree.ROOT / "cohort" / path).with_suffix(".cc").is_file()]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        offences = [found for found in pool.map(compile_header, headers) if found]
    print(f"{len(headers)} headers without a source")
    return tree.report(offences)


if __name__ == "__main__":
    sys.exit(main())

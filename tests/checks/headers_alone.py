"""Each header of cohort/ compiles on its own.

Where x.cc stands beside x.h, x.cc includes it first (includes.py holds that), and the build without
precompiled headers has compiled it. Left are headers without a source; these are compiled here, through
ccache where it is installed: what did not change costs nothing the next time, nor in another clone.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import tree


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--includes", required=True, help="libtorch's include folders, by ;")
    parser.add_argument("--generated", required=True, help="the build's own include folder")
    parser.add_argument("--working-dir", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.working_dir.mkdir(exist_ok=True)

    ccache = shutil.which("ccache")
    environment = {**os.environ, "CCACHE_BASEDIR": str(tree.ROOT)}
    command = [*([ccache] if ccache else []), arguments.compiler, "-std=c++20", "-c", "-Wall", "-Wextra",
               "-Wno-unused-parameter", "-DAT_PER_OPERATOR_HEADERS", f"-I{tree.ROOT}",
               f"-I{arguments.generated}"]
    # Naming /usr/include would take it out of its place in the compiler's own order.
    command += [f"-isystem{folder}" for folder in arguments.includes.split(";")
                if folder not in ("", "/usr/include")]
    if "clang" in os.path.basename(arguments.compiler):
        command += ["-include", "ATen/core/ivalue.h"]

    def compile_header(header):
        source = arguments.working_dir / (header.replace("/", "_") + ".cc")
        source.write_text(f'#include "{header}"\n#include "{header}"\n')
        done = subprocess.run([*command, str(source), "-o", str(source.with_suffix(".o"))],
                              capture_output=True, text=True, check=False, env=environment)
        source.with_suffix(".o").unlink(missing_ok=True)
        return f"{header} does not compile on its own:\n{done.stderr}" if done.returncode else None

    headers = [f"cohort/{path}" for path, _ in tree.sources(tree.ROOT / "cohort", (".h",))
               if not (tree.ROOT / "cohort" / path).with_suffix(".cc").is_file()]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        offences = [found for found in pool.map(compile_header, headers) if found]
    print(f"{len(headers)} headers without a source")
    return tree.report(offences)


if __name__ == "__main__":
    sys.exit(main())

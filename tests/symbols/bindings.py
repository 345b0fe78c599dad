"""No library of ours and libtorch run each other's code under a shared name.

Usage: bindings.py PROGRAM LIBTORCH...

The dynamic loader binds a name to the first library that exports it, also where the library that
refers to it has its own. That is harmless for the standard library's templates of types that are its
own, of which every copy does the same, and for what our sources compile of libtorch's headers. It is
a fault for a library that exists twice, as oneDNN does in a wheel: std::call_once, made of a lambda
of the one, runs the other's lambda. The program is run with the loader telling what it binds.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

BINDING = re.compile(r"binding file (\S+) \[\d+\] to (\S+) \[\d+\]: normal symbol `([^']+)'")
# Words that begin no qualified name of anybody's: of c++filt's, and of C++.
WORDS = set("""typeinfo vtable VTT name for guard variable non virtual thunk to construction in reference
temporary clone lambda auto decltype operator new delete const volatile void bool char short int long signed unsigned
float double __int128 char8_t char16_t char32_t wchar_t true false enable_if __va_list_tag""".split())
STANDARD = {"std", "__gnu_cxx", "__cxxabiv1"}
LIBTORCH = {"at", "c10", "caffe2", "torch", "TensorBase", "C10FlagParser"}


def owners(demangled):
    """The namespaces, or names of none, that a readable name is made of."""
    text = re.sub(r"\(anonymous namespace\)|\[abi:\w+\]|\b\d[\w.]*\b", " ", demangled)
    text = text.replace("~", "")
    text = re.sub(r"operator\s*(?:[^\w\s(]+|\(\))", " ", text)
    names = re.findall(r"(?<![\w:])(?<!::)([A-Za-z_]\w*)", text)
    return {name for name in names if name not in WORDS}


def crossings(log):
    """What the loader's log says was bound from one file to another: (from, to, mangled name)."""
    return {match.groups() for match in BINDING.finditer(log) if match[1] != match[2]}


def offences(found, libtorch, shared_with_libtorch, defined, readable, ours):
    """found: crossings. libtorch: its files; shared_with_libtorch: files that it is linked with itself.
    defined(file): the names that a file exports. ours: files that include libtorch's headers."""
    result = []
    for source, target, name in sorted(found):
        if (source in libtorch) == (target in libtorch):
            continue
        other = target if source in libtorch else source
        if other in shared_with_libtorch or name not in defined(source):
            continue
        strange = owners(readable(name)) - STANDARD
        if other in ours:
            strange -= LIBTORCH
        if strange:
            result.append(f"{source} runs {readable(name)} of {target}")
    return result


def run_and_log(program):
    """The loader's log of a run, with every name bound."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "LD_DEBUG": "bindings", "LD_DEBUG_OUTPUT": f"{folder}/log",
                       "LD_BIND_NOW": "1"}
        subprocess.run([program], env=environment, check=True, timeout=100)
        return "".join(path.read_text(errors="replace") for path in Path(folder).iterdir())


def linked(file):
    listing = subprocess.run(["ldd", file], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"=> (/\S+)", listing))


class Symbols:
    def __init__(self):
        self._defined = {}

    def defined(self, file):
        if file not in self._defined:
            text = subprocess.run(["nm", "-D", "--defined-only", "--without-symbol-versions", file],
                                  capture_output=True, text=True).stdout
            self._defined[file] = {line.split()[-1] for line in text.splitlines() if line}
        return self._defined[file]


def readable_names(names):
    text = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True,
                          check=True).stdout
    return dict(zip(names, text.splitlines()))


def main():
    program, *libtorch = sys.argv[1:]
    found = crossings(run_and_log(program))
    files = {file for binding in found for file in binding[:2]}
    # As the loader names them, which may be by another path.
    of_libtorch = {file for file in files
                   if Path(file).resolve() in {Path(library).resolve() for library in libtorch}}
    beside = {file for library in of_libtorch for file in linked(library)} - of_libtorch
    ours = {file for file in files if Path(file).name.startswith("libcohort") or file == program}
    names = readable_names(sorted({name for *_, name in found}))
    wrong = offences(found, of_libtorch, beside, Symbols().defined, names.__getitem__, ours)
    loaded = any("libdnnl" in file for file in files)
    print("\n".join(wrong))
    print(f"{len(files)} files, {len(found)} names bound across files, {len(wrong)} wrongly")
    if not of_libtorch or not loaded:
        wrong.append("the program did not load libtorch and oneDNN")
        print(wrong[-1])
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

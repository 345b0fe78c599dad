"""Lets a PyTorch of PyPI run on CPUs without NVIDIA's libraries, which are gigabytes.

Usage: python3 stand_ins.py, by the interpreter of the environment that has PyTorch.

What its libraries link is looked for when they are loaded, though on a CPU no function of it is called.
So each library that is missing gets an empty one of its name and of the versions that are asked for; and
functions are looked for when they are called, not before.

And the environment gets a g++ for torch.compile, which looks for PyTorch's libraries in the environment first:
it is told to look where Python's are, and Debian's libtorch is there.
"""

import pathlib
import re
import subprocess
import sys
import sysconfig

PACKAGES = pathlib.Path(sysconfig.get_paths()["purelib"])
LIBRARIES = PACKAGES / "torch/lib"
# PyTorch's own search path has it.
STAND_INS = PACKAGES / "nvidia/cu13/lib"
_NVIDIAS = re.compile(r"lib(cu|nv|nccl)")
# Not functions, so that they are looked for at once.
_DATA = {"libnvshmem_host.so.3": ["nvshmem_selected_device_transport"]}


def wanted():
    """{library: the versions of symbols that PyTorch asks it for}, of NVIDIA's."""
    versions = {}
    for library in LIBRARIES.glob("lib*.so*"):
        described = subprocess.run(["readelf", "--dynamic", "--version-info", "--wide", library],
                                   stdout=subprocess.PIPE, text=True, check=True).stdout
        file = None
        for line in described.splitlines():
            if found := re.search(r"\(NEEDED\).*\[(.*)\]", line):
                versions.setdefault(found[1], set())
            elif found := re.search(r"File: (\S+)", line):
                file = found[1]
            elif found := re.search(r"Name: (\S+)\s+Flags", line):
                versions.setdefault(file, set()).add(found[1])
    return {name: found for name, found in versions.items() if _NVIDIAS.match(name)}


def make(name, versions):
    data = _DATA.get(name, [])
    source = "".join(f"void *{symbol};\n" for symbol in data)
    script = STAND_INS / f"{name}.versions"
    script.write_text("".join(f"{version} {{ {' '.join(f'{symbol};' for symbol in data)} }};\n"
                              for version in sorted(versions)))
    subprocess.run(["gcc", "-shared", "-nostdlib", f"-Wl,-soname,{name}",
                    *([f"-Wl,--version-script={script}"] if versions else []),
                    "-x", "c", "-", "-o", STAND_INS / name], input=source, text=True, check=True)
    script.unlink()


def main():
    for name, versions in wanted().items():
        if not any((folder / name).exists() for folder in (LIBRARIES, STAND_INS)):
            make(name, versions)
    # Python loads modules with every function looked for at once.
    (PACKAGES / "stand_ins.pth").write_text(
        "import os, sys; sys.setdlopenflags(os.RTLD_LAZY)\n")
    compiler = pathlib.Path(sys.prefix) / "bin/g++"
    libraries = LIBRARIES.relative_to(sys.prefix)
    compiler.write_text(f'#!/bin/sh\nexec /usr/bin/g++ -L"$(dirname "$0")/../{libraries}" "$@"\n')
    compiler.chmod(0o755)


main()

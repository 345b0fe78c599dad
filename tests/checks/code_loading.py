"""No code from files or the wire: nothing in the library can load a program, run a shell, or read
a format that runs code while it is read."""

import re

import tree

FORBIDDEN = re.compile(
    r"\b(torch::(?:jit::)?load|torch::pickle_load|dlopen|dlmopen|popen|pickle\w*|Unpickler)\b"
    r"|\b(system|execl|execlp|execle|execvp|execvpe)\s*\("
)
# MultiProcessRunner starts its own binary again; oneDNN's name is fixed when Cohort is compiled; NCCL has one
# name, and the environment may give another.
EXEMPT = ("cohort/testing/", "cohort/ops/plan/onednn_functions.cc", "cohort/collective/nccl/nccl_library.cc")


def check(root):
    offences = []
    for folder in ("cohort", "tools"):
        for path, text in tree.sources(root / folder):
            where = f"{folder}/{path}"
            if where.startswith(EXEMPT):
                continue
            code = tree.without_comments(text)
            for number, line in enumerate(code.splitlines(), start=1):
                match = FORBIDDEN.search(line)
                if match:
                    offences.append(f"{where}:{number}: {match.group(0).strip(' (')} loads or runs code")
    return offences


if __name__ == "__main__":
    tree.run(check)

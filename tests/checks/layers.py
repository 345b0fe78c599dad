"""Includes point only downwards: a folder of cohort/ uses its own headers and those of lower rank.

`testing` may use everything and is used by tests alone. Tests (x_test.cc) are exempt.
"""

import tree

# Folders of one rank may not include each other.
RANK = {
    "core": 0,
    "ops": 1,
    "image": 2,
    "optim": 2,
    "data": 3,
    "cluster": 3,
    "collective": 4,
    "train": 5,
    "distribute": 6,
    "parameter_server": 7,
    "keras": 8,
    "transform": 9,
    "testing": 10,
}


def check(root):
    offences = []
    for path, text in tree.sources(root / "cohort"):
        where = f"cohort/{path}"
        if len(path.parts) > 1 and path.parts[0] not in RANK:
            offences.append(f"{where}: folder '{path.parts[0]}' has no rank in tests/checks/layers.py")
            continue
        for line, quoted, name in tree.includes(text):
            if not quoted:
                continue
            parts = name.split("/")
            if parts[0] != "cohort":
                offences.append(f'{where}:{line}: "{name}" must be named from the root: "cohort/..."')
                continue
            generated = name == "cohort/version.h"
            if not generated and not (root / name).is_file():
                offences.append(f'{where}:{line}: "{name}" does not exist')
                continue
            if tree.is_test(path) or len(path.parts) == 1:
                continue
            own, used = path.parts[0], parts[1]
            if len(parts) == 2 and name != "cohort/version.h":
                offences.append(f'{where}:{line}: "{name}" is for users, not for the library itself')
            elif len(parts) > 2 and used != own and RANK[used] >= RANK[own]:
                offences.append(f'{where}:{line}: {own} may not include {used}, which is not below it')
    return offences


if __name__ == "__main__":
    tree.run(check)

"""Keras knows no strategy by its name: models, losses and fit run over the interface that all have."""

import re

import tree

NAMES = re.compile(
    r"\b(Default|OneDevice|Mirrored|MultiWorkerMirrored|CentralStorage|ParameterServer|Local|TPU)Strategy")


def check(root):
    offences = []
    for path, text in tree.sources(root / "cohort" / "keras"):
        if tree.is_test(path) or path.stem.startswith("testing_"):
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            match = NAMES.search(line)
            if match:
                offences.append(f"cohort/keras/{path}:{number}: names {match.group(0)}")
    return offences


if __name__ == "__main__":
    tree.run(check)

"""What may be included where: compile time is a feature, and users need nothing but libtorch.

- <torch/torch.h> and <ATen/ATen.h> appear nowhere (9 s and 4 s a file).
- A public header, one that <cohort/cohort.h> reaches, includes of libtorch only what
  libtorch_headers.txt grants it.
- <torch/nn...> appears only in files that libtorch_headers.txt grants it.
- No gRPC or protobuf header appears in a public header.
- <cohort/data.h> includes what <cohort/cohort.h> does of core and data.
- x.cc includes x.h first, so that x.h is known to compile on its own.
- Who calls quoted() includes cohort/core/text.h, or x.cc's own x.h does: without it, a call with a std::string silently
  finds std::quoted, whose text is another.
"""

import re
from pathlib import Path

import tree

GRANTS = Path(__file__).with_name("libtorch_headers.txt")
FOLDERS = ("cohort", "examples", "tools", "bench", "tests")
NOWHERE = {"torch/torch.h", "ATen/ATen.h", "torch/all.h", "torch/extension.h"}
LIBTORCH = ("torch/", "ATen/", "c10/", "caffe2/")
TEXT = "cohort/core/text.h"
QUOTED = re.compile(r"(?<![\w:.>])(?:(?:cohort::)?internal::)?quoted\(")
WIRE = ("grpc", "google/protobuf", "absl/")


def public_headers(root):
    """What <cohort/cohort.h> reaches, itself included."""
    found = set()
    waiting = ["cohort/cohort.h"]
    while waiting:
        name = waiting.pop()
        if name not in found and (root / name).is_file():
            found.add(name)
            waiting += [included for _, _, included in tree.includes((root / name).read_text())
                        if included.startswith("cohort/")]
    return found


def read_grants(text):
    """{file: [header]}; file * means any, a header that ends in * grants all that begin so."""
    grants = {}
    for line in text.splitlines():
        line = line.split("#", 1)[0].split()
        if line:
            grants.setdefault(line[0], []).extend(line[1:])
    return grants


def granted(grants, where, header):
    return any(
        header == grant or (grant.endswith("*") and header.startswith(grant[:-1]))
        for grant in grants.get(where, []) + grants.get("*", [])
    )


def check_file(where, text, grants, public=False):
    offences = []
    for line, _, name in tree.includes(text):
        at = f"{where}:{line}: <{name}>"
        if name in NOWHERE:
            offences.append(f"{at} may not be included anywhere; use per-operator headers")
        elif name.startswith("torch/nn") and not granted(grants, where, name):
            offences.append(f"{at} is slow to compile; grant it in {GRANTS.name} if it must be")
        elif public and name.startswith(LIBTORCH) and not granted(grants, where, name):
            offences.append(f"{at} may not be in a public header; use cohort/core/structure/tensor.h")
        elif public and (name.startswith(WIRE) or name.endswith(".pb.h")):
            offences.append(f"{at} may not be in a public header: users need no gRPC or protobuf")
    return offences


def check_own_header_first(root, where, text):
    path = Path(where)
    header = path.with_suffix(".h")
    if path.suffix != ".cc" or not (root / header).is_file():
        return []
    included = tree.includes(text)
    if included and included[0][2] == str(header):
        return []
    return [f'{where}:1: the first include must be "{header}"']


def check_quoted(root, where, text):
    use = QUOTED.search(tree.without_comments(text))
    if use is None or where == TEXT:
        return []
    header = root / Path(where).with_suffix(".h")
    texts = [text, header.read_text()] if header.is_file() else [text]
    if any(name == TEXT for one in texts for _, _, name in tree.includes(one)):
        return []
    return [f"{where}:{text.count(chr(10), 0, use.start()) + 1}: include \"{TEXT}\" for quoted(): without it "
            "std::quoted may be called instead"]


def check_data_header(root):
    def included(header):
        path = root / "cohort" / header
        return [name for _, _, name in tree.includes(path.read_text())] if path.is_file() else []

    lacks = [name for name in included("cohort.h")
             if name.startswith(("cohort/core/", "cohort/data/")) and name not in included("data.h")]
    return [f'cohort/data.h: lacks "{name}", which cohort/cohort.h includes' for name in lacks]


def check(root):
    grants = read_grants(GRANTS.read_text())
    public = public_headers(root)
    offences = []
    for folder in FOLDERS:
        for path, text in tree.sources(root / folder):
            where = f"{folder}/{path}"
            offences += check_file(where, text, grants, where in public)
            if folder in ("cohort", "tools"):
                offences += check_own_header_first(root, where, text)
            offences += check_quoted(root, where, text)
    offences += check_data_header(root)
    for where in grants:
        if where != "*" and not (root / where).is_file():
            offences.append(f"{GRANTS.name}: {where} does not exist")
    return offences


if __name__ == "__main__":
    tree.run(check)

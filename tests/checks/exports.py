"""libcohort exports what <cohort/cohort.h> declares, and nothing else of its own. libcohort_data, of
which libcohort uses what is internal, too, exports all.

clang lists the declarations. A function or a class's member that is declared there and defined in
the library must be exported; in a namespace `internal...` only what the headers' own code calls.
And what is exported must be declared there. docs/reference.md names every class, enum and function that a
namespace of theirs declares.
"""

import argparse
import json
import re
import subprocess
import sys

import tree

REFERENCE = "docs/reference.md"
NAMED = ("CXXRecordDecl", "ClassTemplateDecl", "EnumDecl", "FunctionDecl", "FunctionTemplateDecl")
METHODS = ("CXXMethodDecl", "CXXConstructorDecl", "CXXDestructorDecl", "CXXConversionDecl")


def read_ast(text):
    """The declarations that clang printed one after another."""
    decoder = json.JSONDecoder()
    place, found = 0, []
    while match := re.compile(r"\S").search(text, place):
        value, place = decoder.raw_decode(text, match.start())
        found.append(value)
    return found


def defined_there(node):
    return (node.get("inline") or node.get("constexpr") or node.get("explicitlyDefaulted")
            or any(child.get("kind") == "CompoundStmt" for child in node.get("inner", [])))


class Declarations:
    """What the installed headers declare. declared: {mangled name: text}, required: those of them
    that a program may refer to. names: those of classes, enums and functions."""

    def __init__(self, ast):
        self.declared, self.required, self.names = {}, set(), set()
        self._referred = set()
        self._file, self._line = "", 0
        for node in ast:
            self._find_references(node)
        for node in ast:
            if node["kind"] == "NamespaceDecl":
                self._visit(node, False, False)

    def _find_references(self, node):
        if isinstance(node, list):
            for value in node:
                self._find_references(value)
        elif isinstance(node, dict):
            self._referred.add(node.get("referencedMemberDecl"))
            self._referred.add(node.get("referencedDecl", {}).get("id"))
            self._referred.update(found["id"] for found in node.get("lookups", []))
            for value in node.values():
                self._find_references(value)

    def _visit(self, node, internal, in_class):
        for child in node.get("inner", []):
            kind = child["kind"]
            if (kind in NAMED and not internal and not in_class
                    and (kind != "CXXRecordDecl" or child.get("completeDefinition"))
                    and re.fullmatch(r"(?!operator\b)\w+", child.get("name", ""))):
                self.names.add(child["name"])
            if kind == "NamespaceDecl":
                self._visit(child, internal or child.get("name", "").startswith("internal"), False)
            elif kind == "CXXRecordDecl":
                self._visit(child, internal, True)
            elif kind in METHODS or kind == "FunctionDecl" or (
                    kind == "VarDecl" and (in_class or child.get("storageClass") == "extern")):
                self._add(child, internal)

    def _add(self, node, internal):
        if "mangledName" not in node:
            return
        name = node["mangledName"]
        self.declared[name] = f"{node.get('name')} {node.get('type', {}).get('qualType', '')}"
        if not defined_there(node) and (not internal or node["id"] in self._referred):
            self.required.add(name)


def any_variant(name):
    """Constructors and destructors have several symbols; clang names one."""
    return re.sub(r"C2(?=E)", "C1", re.sub(r"D[02](?=E)", "D1", name))


def readable(name):
    return subprocess.run(["c++filt", name], capture_output=True, text=True,
                          check=True).stdout.strip()


def check(declarations, exported, hidden):
    """exported, hidden: mangled names of the library's functions."""
    offences = [f"{readable(name)} is declared in an installed header, but not exported: mark it "
                "or its class with COHORT_API"
                for name in sorted(hidden) if any_variant(name) in declarations.required]
    offences += [f"{readable(name)} is exported, but no installed header declares it"
                 for name in sorted(exported) if any_variant(name) not in declarations.declared]
    return offences


def check_reference(names, text):
    words = set(re.findall(r"\w+", text))
    return [f"{name} is public, but {REFERENCE} does not name it: give its header a section in "
            "tests/checks/reference.py" for name in sorted(names - words)]


def functions(library, kinds, *options):
    """Functions of namespace cohort in the library, none of them a thunk or made of a template."""
    listing = subprocess.run(["nm", "--defined-only", *options, library], capture_output=True,
                             text=True, check=True).stdout
    names = [fields[2] for fields in map(str.split, listing.splitlines())
             if len(fields) == 3 and fields[1] in kinds]
    return {name for name in names if re.match(r"_ZNK?6cohort|_Z[a-zA-Z]*N6cohort", name)
            and "." not in name and "I" not in name.split("E")[0]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clang", required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--data-library", required=True)
    parser.add_argument("--includes", required=True, help="libtorch's include folders, by ;")
    parser.add_argument("--generated", required=True, help="the build's own include folder")
    arguments = parser.parse_args()

    command = [arguments.clang, "-std=c++20", "-fsyntax-only", "-w", "-x", "c++",
               "-DAT_PER_OPERATOR_HEADERS", f"-I{tree.ROOT}", f"-I{arguments.generated}",
               "-Xclang", "-ast-dump=json", "-Xclang", "-ast-dump-filter=cohort"]
    command += [f"-isystem{folder}" for folder in arguments.includes.split(";")
                if folder not in ("", "/usr/include")]
    text = subprocess.run([*command, "-"], input="#include <cohort/cohort.h>\n", text=True,
                          stdout=subprocess.PIPE, check=True).stdout
    declarations = Declarations(read_ast(text))
    exported = functions(arguments.library, "T", "--dynamic")
    hidden = functions(arguments.library, "t") | functions(arguments.data_library, "t")
    print(f"{len(declarations.declared)} declared, {len(exported)} exported, {len(hidden)} hidden")
    unnamed = check_reference(declarations.names, (tree.ROOT / REFERENCE).read_text())
    return tree.report(check(declarations, exported, hidden) + unnamed)


if __name__ == "__main__":
    sys.exit(main())

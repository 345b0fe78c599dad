"""The declarations of a header, as far as docs/reference.md needs them: no compiler is asked.

scan() cuts text into declarations, function() and enumeration() read one.
"""

import re
from collections import namedtuple

import tree

# comment: the lines above, without //. head: up to its body or semicolon. body: what its braces hold,
# None without braces. note: the comment behind it on its line.
Declaration = namedtuple("Declaration", "comment head body note")
Function = namedtuple("Function", "result name arguments rest")

_CLOSED_BY = {"(": ")", "{": "}", "[": "]"}
_TOKEN = re.compile(r'''"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\\n])'|//[^\n]*|(?s:.)''')
_WORDS = re.compile(r"(?:COHORT_API|inline|static|virtual|explicit|constexpr|friend|extern|"
                    r"\[\[\w+\]\]|typename) ?")
_REQUIRES = re.compile(r"requires ?")


def _closing(text, begin):
    """The place behind the bracket that closes the one at `begin`."""
    depth = 0
    for token in _TOKEN.finditer(text, begin):
        if token.group() in _CLOSED_BY:
            depth += 1
        elif token.group() in _CLOSED_BY.values():
            depth -= 1
            if depth == 0:
                return token.end()
    return len(text)


def _behind_angles(text, begin):
    """The place behind the > that closes the < at `begin`."""
    depth, place = 0, begin
    while place < len(text):
        letter = text[place]
        if letter in _CLOSED_BY:
            place = _closing(text, place)
            continue
        depth += {"<": 1, ">": -1}.get(letter, 0)
        place += 1
        if depth == 0:
            return place
    return place


def scan(text):
    """The declarations at the outer level of `text`, [Declaration]; a blank line or a heading ends a
    comment."""
    found, comment, used, place = [], [], False, 0
    while place < len(text):
        line_end = text.find("\n", place)
        line_end = len(text) if line_end < 0 else line_end
        line = text[place:line_end].strip()
        if not line or line.startswith("#") or line.startswith("// ----"):
            comment, used, place = [], False, line_end + 1
        elif line.startswith("//"):
            comment = [line[3:]] if used else [*comment, line[3:]]
            used, place = False, line_end + 1
        elif access := re.match(r"\s*(public|private|protected):", text[place:line_end]):
            found.append(Declaration([], access.group(1) + ":", None, ""))
            comment, place = [], line_end + 1
        else:
            head, body, place = _declaration(text, place)
            end = text.find("\n", place)
            end = len(text) if end < 0 else end
            note = re.match(r"\s*//\s*(.*)", text[place:end])
            found.append(Declaration(comment, head, body, note.group(1) if note else ""))
            used = True  # and still the comment of what follows without another one
            place = end + 1 if note or not text[place:end].strip() else place
    return found


def _without_angles(head):
    while (shorter := re.sub(r"<[^<>]*>", "", head)) != head:
        head = shorter
    return head


def _declaration(text, begin):
    place, head, body = begin, "", None
    while place < len(text):
        token = _TOKEN.match(text, place)
        letter = token.group()
        if letter.startswith("//"):
            place = token.end()
        elif letter == ";":
            return " ".join(head.split()), body, token.end()
        elif letter in "([":
            end = _closing(text, place)
            head += tree.without_comments(text[place:end])
            place = end
        elif letter == "{":
            end = _closing(text, place)
            body = text[place + 1:end - 1]
            after = text[end:].lstrip()
            is_type = re.search(r"\b(class|struct|enum|union)\b", head) and "(" not in head
            if (re.search(r"[=\w>] ?$", head) and "(" not in _without_angles(head) and not is_type
                    and not re.match(r"(inline )?namespace\b", head)):
                head, body, place = head + text[place:end], None, end  # a value
                continue
            if after[:1] == ";" or is_type:
                place = end
                continue
            if after[:1] in (",", "{"):  # a member that a constructor begins with
                place = end
                continue
            return " ".join(head.split()), body, end
        else:
            head += letter
            place = token.end()
    return " ".join(head.split()), body, place


def _without_templates(head):
    while match := re.match(r"template ?(?=<)", head):
        head = head[_behind_angles(head, match.end()):].lstrip()
        while clause := _REQUIRES.match(head):
            head = head[clause.end():]
            while True:
                if head.startswith("("):
                    place = _closing(head, 0)
                else:
                    place = re.match(r"!?[\w:]*", head).end()
                    if head[place:place + 1] == "<":
                        place = _behind_angles(head, place)
                head = head[place:].lstrip()
                joint = re.match(r"(&&|\|\|) ?", head)
                if not joint:
                    break
                head = head[joint.end():]
    return head


def function(head):
    """The Function that a head declares; None if it declares none that has a name."""
    head = _without_templates(head)
    while match := _WORDS.match(head):
        head = head[match.end():]
    place = 0
    while place < len(head) and head[place] != "(":
        place = _behind_angles(head, place) if head[place] == "<" else place + 1
    before, rest = head[:place], head[place:]
    match = re.search(r"(~?\w+) ?$", before)
    if not match or not rest or "operator" in before or "=" in before:
        return None
    end = _closing(rest, 0)
    result, after = before[:match.start()].strip(), rest[end:].strip()
    if trailing := re.search(r"-> ?(.+)$", after):
        result = trailing.group(1)
    if result.startswith(("using", "typedef", "return", "static_assert")) or match.group(1) in (
            "static_assert", "requires", "decltype"):
        return None
    return Function(result, match.group(1), " ".join(rest[1:end - 1].split()), after)


def type_name(head):
    """(kind, name) of the class, struct or enum that a head with a body declares, or None."""
    match = re.match(r"(class|struct|enum class|enum) (?:COHORT_API |\[\[\w+\]\] )*(\w+)\b(?! ?<|::)",
                     _without_templates(head))
    return match.groups() if match else None


def public_namespaces(text):
    """[(namespace, its declarations)] of a header, without those of the library's own."""
    found = []

    def visit(name, inner):
        if "internal" in name or name.startswith("std"):
            return
        declarations = scan(inner)
        found.append((name, declarations))
        for declaration in declarations:
            match = re.match(r"(?:inline )?namespace ([\w:]+)", declaration.head)
            if match and declaration.body is not None:
                visit(f"{name}::{match.group(1)}" if name else match.group(1), declaration.body)

    visit("", text)
    return found

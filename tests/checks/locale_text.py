"""Numbers become text, and text numbers, the same way whatever locale the program has set.

What Cohort saves, sends, prints or compares is made by str() (core/error.h), TextStream and core/text.h, and
read by parse_number. What the C and C++ libraries offer beside them asks the program's locale, or is so near to
what does (std::to_string of an int, and of a double) that a reader cannot tell. The library's tests are exempt.
"""

import re

import tree

INSTEAD = {
    r"\bv?(?:sn|s|f|d|as)?printf\s*\(|\bstd::format\b": "take str(), fixed_digits and their like",
    r"\bstd::[ow]?(?:i|w)?stringstream\b": "write to a TextStream; read with split_words and parse_number",
    r"\bstd::w?o?fstream\b": "write what str() gives through core/files",
    r"\bstd::to_w?string\b": "take decimal_digits",
    r"\bstd::sto(?:i|l|ll|ul|ull|f|d|ld)\s*\(|\b(?:strto[a-z]+|ato[fil]|atoll|v?s?scanf)\s*\(":
        "take parse_number or std::from_chars",
    r"\bis(?:alnum|alpha|blank|cntrl|digit|graph|lower|print|punct|space|upper|xdigit)\b|\bto(?:lower|upper)\b":
        "take is_letter and its neighbours in core/text.h",
    r"\bstd::w?regex\b(?!_)": "take the text apart by hand",
    r"\b(?:strf|strp|asc|c)time\s*\(|\bstd::(?:put|get)_(?:time|money)\b|\blocaltime": "take utc_text",
    r"\bstrerror(?:_r|_l)?\s*\(|\bstrsignal\s*\(|\.message\(\)": "take errno_text",
    r"\b(?:strcoll|strxfrm|wcs\w+|mbs\w+|alphasort|glob)\s*\(": "compare bytes",
    r"\b(?:fnmatch|gai_strerror)\s*\(": "let a ClassicLocale stand before it",
    r"\bsetlocale\s*\(|\blocale::global\b": "leave the program's locale alone",
}
FORBIDDEN = [(re.compile(pattern), advice) for pattern, advice in INSTEAD.items()]
BENEATH_CLASSIC = re.compile(r"\b(?:fnmatch|gai_strerror)\s*\(")

ALLOWED = {
    ("cohort/core/text_stream.h", "std::ostringstream"): "it is the one stream into a string",
    ("cohort/testing/log_file.h", "std::regex"): "a test's own pattern for the lines of a log",
    ("cohort/testing/multi_process_runner.cc", "std::regex"): "the same",
}


def check(root):
    offences = []
    for folder in ("cohort", "tools"):
        for path, text in tree.sources(root / folder):
            where = f"{folder}/{path}"
            if tree.is_test(path) or path.name.startswith("testing_"):
                continue
            offences += check_file(where, tree.without_comments(text))
    return offences


def check_file(where, code):
    offences = []
    has_classic = "ClassicLocale classic" in code
    for number, line in enumerate(code.splitlines(), start=1):
        for pattern, advice in FORBIDDEN:
            for match in pattern.finditer(line):
                name = match.group(0).rstrip("( ")
                if (where, name) in ALLOWED or (has_classic and BENEATH_CLASSIC.match(match.group(0))):
                    continue
                offences.append(f"{where}:{number}: {name} depends on the program's locale, or may; {advice}")
    return offences


if __name__ == "__main__":
    tree.run(check)

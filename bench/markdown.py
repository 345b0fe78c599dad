"""Prints what benchmarks have measured as the tables of docs/benchmarks.md.

Usage: python3 bench/markdown.py FILE...      files of --json; a work that several have is the last one's

A column a work, a row a side; a ratio is that of the last row in bold to this side. Of several kinds of one
peer the ratio to the best is bold, and the goal stands beside it. Below: the variants that took part.
"""

import json
import pathlib
import sys


def tables(rows):
    """Lines of text."""
    works = list(dict.fromkeys(row["work"] for row in rows))
    sides = {}
    for row in rows:
        sides.setdefault((row["ours"], row["name"]), {})[row["work"]] = row
    header = [line([first, *works]) for first in ("", "at its best with")]
    rule = "|---" * (1 + len(works)) + "|"

    yield header[0]
    yield rule
    for side in in_order(sides):
        one = next(iter(side.values()))
        title = f"**{one['title']}**" if one["ratio"] is None else one["title"]
        yield line([title, *(cell(side[work]) if work in side else "" for work in works)])

    chosen = {name: side for (_, name), side in sides.items()
              if any(row["variant"] for row in side.values())}
    if chosen:
        yield ""
        yield header[1]
        yield rule
        for side in chosen.values():
            title = next(iter(side.values()))["title"]
            yield line([title, *(side[work]["variant"] if work in side else "" for work in works)])


def in_order(sides):
    """Those of a comparison together, whichever works have them."""
    ours = list(dict.fromkeys(one for one, _ in sides))
    return [side for one in ours for (of, _), side in sides.items() if of == one]


def cell(row):
    if row["ratio"] is None:
        return row["text"]
    ratio = f"{row['ratio']:.2f}"
    # Bold: the best of a peer's kinds, and a peer that is of one kind.
    ratio = f"**{ratio}**" if row["best"] or not row["one_of_several"] else ratio
    return f"{row['text']}: {ratio}" + (f" (goal {row['goal']})" if row["goal"] else "")


def line(cells):
    return "|" + "|".join(f" {text} " if text else " " for text in cells) + "|"


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    rows = {}
    for path in sys.argv[1:]:
        described = json.loads(pathlib.Path(path).read_text())
        own = {}
        for row in described["rows"]:
            own.setdefault(row["work"], []).append(row)
        rows.update(own)
        print(f"{described['machine']['cpu']}, {described['machine']['cores']} cores; "
              f"{'; '.join(described.get('versions', []))}; control: {described['control']}\n")
    print("\n".join(tables([row for own in rows.values() for row in own])))


if __name__ == "__main__":
    main()

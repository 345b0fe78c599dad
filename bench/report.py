"""How a benchmark of several works runs, and the table that it ends in."""

import argparse
import json
import os
import pathlib
import platform
import signal
import sys
from typing import Callable, NamedTuple

import cores
import harness


class Comparison(NamedTuple):
    """The side `ours` beside others: {short name: ratio that is the goal, or None}. Where there are several
    short names instead of one, the goal is that beside the best of them."""

    ours: str
    others: dict
    # The least figure of `ours` itself that is a goal.
    least: float | None = None
    # How the table has its figures; None: as the work's.
    text: Callable | None = None


class Work(NamedTuple):
    title: str
    comparisons: list
    # How the table has a figure.
    text: Callable = "{:,.0f}/s".format
    # How long its turns are, in turns of the others: for slow steps.
    turns: float = 1
    # rounds(sides, options) -> the rounds, of a work whose sides take no turns.
    rounds: Callable | None = None

    def names(self):
        """The sides that take part, each once."""
        return list(dict.fromkeys(name for one in self.comparisons
                                  for names in [one.ours, *one.others] for name in several(names)))


def several(names):
    """The names that stand for one in a comparison."""
    return (names,) if isinstance(names, str) else names


def measure(work, sides, options):
    """[{short name: figure}], one a round, after each side has chosen its best candidate."""
    if work.rounds:
        return work.rounds(sides, options)
    for side in sides.values():
        side.choose(options.seconds / 4, times=1 if options.quick else 3)
    seconds = options.seconds * work.turns
    return harness.alternate(
        {name: lambda side=side: side.turn(seconds) for name, side in sides.items()},
        options.rounds)


def rows(work, sides, rounds):
    """A row for each side of each comparison: {work, name, ours, title, variant, figure, text, ratio,
    one_of_several, best, goal, verdict}; best: whether it is that of several which comes closest."""
    median = harness.medians(rounds)

    def row(name, text, **more):
        side = sides[name]
        return {"work": work.title, "name": name, "title": side.title, "variant": side.chosen[0],
                "figure": median[name], "text": text(median[name]), **more}

    for ours, others, least, own_text in work.comparisons:
        text = own_text or work.text
        yield row(ours, text, ours=ours, ratio=None, one_of_several=False, best=False, goal=least and text(least),
                  verdict=verdict(median[ours], least))
        for names, goal in others.items():
            ratios = {name: harness.ratio(rounds, ours, name) for name in several(names)}
            best = min(ratios, key=ratios.get)
            for name, ratio in ratios.items():
                counts = goal is not None and name == best
                several_kinds = len(ratios) > 1
                yield row(name, text, ours=ours, ratio=ratio, one_of_several=several_kinds,
                          best=several_kinds and name == best, goal=f"{goal:.2f}" if counts else None,
                          verdict=verdict(ratio, goal if counts else None))


def verdict(value, goal):
    return "" if goal is None else "met" if value >= goal else "MISSED"


def table(header, lines):
    """Lines of text: columns as wide as they need, the first two to the left."""
    widths = [max(len(line[i]) for line in [header, *lines]) for i in range(len(header))]
    for line in [header, ["-" * width for width in widths], *lines]:
        yield "  ".join(cell.ljust(width) if column < 2 else cell.rjust(width)
                        for column, (cell, width) in enumerate(zip(line, widths))).rstrip()


def print_table(all_rows, file=None):
    lines = []
    work = None
    for row in all_rows:
        # A work is named once.
        side = f"{row['title']} [{row['variant']}]" if row["variant"] else row["title"]
        lines.append([row["work"] if row["work"] != work else "", side, row["text"],
                      "" if row["ratio"] is None else f"{row['ratio']:.2f}", row["goal"] or "",
                      ", ".join(filter(None, ["best" if row["best"] else "", row["verdict"]]))])
        work = row["work"]
    print("\n".join(table(["work", "side", "median", "ratio to it", "goal", ""], lines)), file=file)
    goals = [row["verdict"] for row in all_rows if row["verdict"]]
    print(f"{goals.count('met')} of {len(goals)} goals met", file=file,
          flush=True)


def machine():
    """What a figure was measured on."""
    cpu = next((line.split(":", 1)[1].strip()
                for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                if line.startswith("model name")), platform.machine())
    return {"cpu": cpu, "cores": len(os.sched_getaffinity(0)), "kernel": platform.release(),
            "load": os.getloadavg()[0]}


def parse_options(description, works, add_options=lambda parser: None):
    parser = argparse.ArgumentParser(description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--only", default=",".join(works), metavar="WORK,WORK")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.5, help="of a turn")
    parser.add_argument("--quick", action="store_true", help="3 rounds of short turns")
    parser.add_argument("--no-control", action="store_true", help="to try things out")
    parser.add_argument("--json", metavar="FILE")
    add_options(parser)
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.seconds = 3, 0.1
    options.only = options.only.split(",")
    for name in options.only:
        if name not in works:
            parser.error(f"there is no work '{name}'; there are {', '.join(works)}")
    if options.rounds < 1 or options.seconds <= 0:
        parser.error("--rounds and --seconds must be positive")
    return options


def run(works, options, make_sides, versions, finish=lambda name, sides: None, notes=list):
    """Measures each work while two cores are free, then prints the table and writes the JSON.

    make_sides(name) returns the work's sides {short name: Side}; finish(name, sides) is called after each
    work, versions() at the end, and notes(), whose lines come below the table. The JSON and, on stderr, the rows of a work are written as soon as
    it is measured.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # ends the workers too
    described = {"machine": machine(), "seconds": options.seconds, "control": {}, "rows": [],
                 "rounds": {}}
    with cores.Control() as control:
        for name in options.only:
            work = works[name]
            print(f"measuring: {work.title}", file=sys.stderr, flush=True)
            sides = make_sides(name)
            if options.no_control:
                rounds = measure(work, sides, options)
            else:
                rounds, scale = cores.while_free(control.measure,
                                                 lambda: measure(work, sides, options))
                described["control"][name] = {"counting": scale, "copying": control.measure("copy")}
            finish(name, sides)
            own_rows = list(rows(work, sides, rounds))
            print_table(own_rows, sys.stderr)
            described["rows"] += own_rows
            described["rounds"][name] = rounds
            write_json(described, options.json)
    described["versions"] = versions()
    described["notes"] = notes()
    write_json(described, options.json)
    print_control(described["control"])
    print(f"{described['machine']['cores']} cores, {described['machine']['cpu']}; "
          f"{'; '.join(described['versions'])}; "
          f"medians of {options.rounds} rounds of {options.seconds:g} s")
    print_table(described["rows"])
    for line in described["notes"]:
        print(line)


def write_json(described, path):
    if path:
        pathlib.Path(path).write_text(json.dumps(described, indent=1))


def print_control(scales):
    if not scales:
        print("NOT A RESULT: measured without the control, on a machine that may be busy")
        return
    counting, copying = (min(one[kind] for one in scales.values())
                         for kind in ("counting", "copying"))
    print(f"two cores counted {counting:.2f} times as far as one, or more; they copied "
          f"{copying:.2f} times as much memory, or more")

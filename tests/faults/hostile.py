"""Row 38: checkpoints that an attacker wrote end in a typed error, soon, without much memory.

hostile.py VICTIM GENERATOR
"""

import re
import subprocess

import harness

# The matrix says one second; a busy machine gets three.
_MOST_MILLISECONDS = 3000
_MOST_KIB_ABOVE_FILES = 64 << 10
_REPORT = re.compile(r"ms (?P<ms>[\d.e+-]+) kib (?P<kib>-?\d+) (?P<outcome>\w+)")


def judge(outcome, expected, files_kib):
    """Milliseconds and KiB; raises Bad where they are too many, or the outcome is another."""
    match = _REPORT.search(outcome.text)
    if outcome.status != 0 or not match:
        raise harness.Bad(f"ended with {outcome.status}: {outcome.text[:400]}")
    milliseconds, kib = float(match["ms"]), int(match["kib"])
    if match["outcome"] != expected:
        raise harness.Bad(f"{match['outcome']}, not {expected}: {outcome.text[:400]}")
    if milliseconds > _MOST_MILLISECONDS:
        raise harness.Bad(f"took {milliseconds:.0f} ms")
    if kib > files_kib + _MOST_KIB_ABOVE_FILES:
        raise harness.Bad(f"took {kib} KiB for files of {files_kib} KiB")
    return milliseconds, kib - files_kib


def main(program, folder, generator):
    victims = harness.Victims(program)
    tally = harness.Tally("row 38, hostile checkpoints")
    most_ms = most_kib = 0
    cases = subprocess.run([generator, folder], check=True, capture_output=True, text=True).stdout
    for name, expected in (line.split() for line in cases.splitlines()):
        files = list((folder / name).iterdir())
        files_kib = sum(file.stat().st_blocks for file in files) // 2  # what they take on the disk
        with tally.strike(name):
            outcome = victims.run("restore", folder / name / "ckpt")
            milliseconds, kib = judge(outcome, expected, files_kib)
            most_ms, most_kib = max(most_ms, milliseconds), max(most_kib, kib)
            tally.note(expected)
        for file in files:
            file.unlink()
    print(f"slowest {most_ms:.0f} ms, most memory beyond the files' size {most_kib} KiB")
    return tally.report(at_least=40)


if __name__ == "__main__":
    harness.run(main)

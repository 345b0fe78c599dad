"""The table example learns its table, and says what is wrong with another.

Usage: tabular.py PROGRAM
"""

import pathlib
import re
import subprocess
import sys
import tempfile


def run(*arguments):
    return subprocess.run([sys.argv[1], *arguments], capture_output=True, text=True, timeout=120,
                          check=False)


def main():
    with tempfile.TemporaryDirectory() as directory:
        made = pathlib.Path(directory, "made.csv")
        learned = run("--made", made, "--rows", "4000", "--epochs", "3")
        assert learned.returncode == 0, learned.stderr
        accuracies = [float(text) for text in re.findall(r"accuracy: ([0-9.]+)", learned.stdout)]
        assert len(accuracies) == 3 and accuracies[-1] > 0.8, learned.stdout
        served = run("--made", made, "--rows", "4000", "--epochs", "2", "--ps", "2")
        assert served.returncode == 0, served.stderr
        accuracies = [float(text) for text in re.findall(r"accuracy: ([0-9.]+)", served.stdout)]
        assert len(accuracies) == 2 and accuracies[-1] > 0.75, served.stdout
        first = made.read_bytes()
        assert first.count(b"\n") == 4001
        run("--made", made, "--rows", "4000", "--epochs", "1", "--seed", "2")
        assert made.read_bytes() != first

        # Words as labels, missing values, no text.
        birds = pathlib.Path(directory, "birds.csv")
        birds.write_text("species,length,island\n" + "gull,40.5,north\ntern,NA,south\n" * 50)
        learned = run("--csv", birds, "--label", "species", "--batch", "10", "--epochs", "5")
        assert learned.returncode == 0, learned.stderr
        assert "accuracy: 1.0000" in learned.stdout, learned.stdout

        refused = run("--csv", birds, "--label", "weight")
        assert refused.returncode != 0
        assert "label_name is 'weight', but the columns are 'species'" in refused.stderr


main()

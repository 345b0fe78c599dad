"""The table example learns its table under both strategies, another program predicts with what it has
left, and both say what is wrong with tables.

Usage: tabular.py TABULAR TABULAR_PREDICT
"""

import csv
import pathlib
import re
import subprocess
import sys
import tempfile

ROWS = 4000


def run(program, *arguments):
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=200,
                          check=False)


def output_of(program, *arguments):
    ended = run(program, *arguments)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def error_of(program, *arguments):
    ended = run(program, *arguments)
    assert ended.returncode != 0, ended.stdout
    return ended.stderr


def read_rows(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write_without(column, rows, path):
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [name for name in rows[0] if name != column],
                                extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def accuracies(text):
    return [float(number) for number in re.findall(r"accuracy: ([0-9.]+)", text)]


def predictions(text):
    lines = [line.split() for line in text.splitlines()]
    return [(label, float(probability)) for label, probability in lines]


def learn_and_predict(tabular, predict, strategy, folder):
    """Returns the table that was made."""
    out = pathlib.Path(folder, strategy)
    trained = output_of(tabular, "--strategy", strategy, "--out", out, "--rows", str(ROWS))
    found = accuracies(trained)
    assert len(found) == 3 and found[-1] > 0.8, trained

    rows = read_rows(out / "table.csv")
    assert len(rows) == ROWS
    request = out / "request.csv"
    write_without("bought", rows, request)
    predicted = predictions(output_of(predict, out, request))
    assert len(predicted) == ROWS
    right = sum(label == row["bought"] for (label, _), row in zip(predicted, rows))
    share = max(sum(row["bought"] == label for row in rows) for label in "01")
    assert right > share + 0.2 * ROWS, f"{right} are right, and {share} of one class"

    # The model says the same after it was saved and read, of a batch of another size.
    first = predictions(trained[trained.index("the first rows:\n"):].split("\n", 1)[1])
    assert len(first) == 5
    for (label, probability), (label_again, again) in zip(first, predicted):
        assert label == label_again and abs(probability - again) < 1e-3, (first, predicted[:5])

    # The order of columns is the request's own; a place and a word that are new are none the worse.
    request.write_text("visits,comment,city,device,income,age\n3,wonderful,city-new,phone,,\n")
    assert len(predictions(output_of(predict, out, request))) == 1
    refuse_requests(predict, out, rows)
    return rows


def refuse_requests(predict, out, rows):
    request = out / "wrong.csv"
    write_without("city", rows[:3], request)
    assert "'city category', which is missing" in error_of(predict, out, request)
    request.write_text("age,income,visits,city,device,comment,shoes\n1,2,3,a,phone,good,42\n")
    assert "has a column 'shoes', which" in error_of(predict, out, request)
    request.write_text("age,income,visits,city,device,comment\nold,2,3,a,phone,good\n")
    assert "'age'" in error_of(predict, out, request)
    assert "nowhere/features" in error_of(predict, out / "nowhere", request)


def train_on_another_table(tabular, predict, folder):
    """Words as labels, missing values, no text, one category."""
    birds = pathlib.Path(folder, "birds.csv")
    birds.write_text("species,length,island\n" + "gull,40.5,north\ntern,NA,south\n" * 50)
    out = pathlib.Path(folder, "birds")
    trained = output_of(tabular, "--csv", birds, "--label", "species", "--batch", "10",
                        "--epochs", "5", "--out", out)
    assert accuracies(trained)[-1] == 1, trained
    request = pathlib.Path(folder, "request.csv")
    request.write_text("island,length\nsouth,NA\nnorth,40.5\n")
    predicted = predictions(output_of(predict, out, request))
    assert [label for label, _ in predicted] == ["tern", "gull"], predicted

    error = error_of(tabular, "--csv", birds, "--label", "weight", "--out", out)
    assert "has no column 'weight' of labels" in error, error
    error = error_of(tabular, "--csv", birds, "--label", "species", "--text", "length", "--out", out)
    assert "'length' is no column of strings" in error, error


def main(tabular, predict):
    with tempfile.TemporaryDirectory() as folder:
        made = learn_and_predict(tabular, predict, "mirrored", folder)
        assert made == learn_and_predict(tabular, predict, "parameter_server", folder)
        train_on_another_table(tabular, predict, folder)


main(*sys.argv[1:])

"""What an input pipeline costs: Cohort beside tf.data, in turn, in one run, on the same data.

Works: scalar_map, vector_map, shuffled, records, small_records, examples, tables, lookups,
distributed.
Files are in the page cache. Before it is measured, each pipeline is read once by every side, and
the numbers of elements and the checksums of all of them must be equal. tf.data takes part with the
best of 1 and 2 threads, with and without parallel calls and prefetch, looped over from Python and
in tf.function; Cohort with and without parallel calls and prefetch. The limit for TFRecords reads
the files' bytes and checksums them, no more. Figures, ratios and the control: as in bench/step.py.
"""

import sys
import tempfile

import harness
import input_data
import report
from report import Comparison, Work

THREADS = (1, 2)
KINDS = ("plain", "parallel")


def nanoseconds(elements_a_second):
    return f"{1e9 / elements_a_second:,.1f} ns"


def over_tf_data(title, goal=3.0, **more):
    return Work(title, [Comparison("cohort", {"tf_data": goal}, more.pop("least", None))], **more)


def over_limit(title):
    return Work(title, [Comparison("cohort", {"tf_data": 3.0, "limit": 0.8})])


WORKS = {
    "scalar_map": over_tf_data("range, map of numbers, batch", least=1 / 0.2e-6, text=nanoseconds),
    "vector_map": over_tf_data("range, map of blocks, batch", goal=None, least=1 / 0.2e-6,
                               text=nanoseconds),
    "shuffled": over_tf_data("images: slices, shuffle, batch"),
    "records": over_limit("TFRecords of 64 KiB, batch"),
    "small_records": over_limit("TFRecords of 0.8 KiB, batch"),
    "examples": over_tf_data("TFRecords, shuffle, batch, parse"),
    "tables": over_tf_data("CSV files, shuffle, batch (make_csv_dataset)"),
    "lookups": over_tf_data("strings: slices, batch, lookup"),
    "distributed": over_tf_data("images: slices, batch, 2 replicas"),
}


def check(name, sides):
    """The number of elements of a pipeline, on which all sides agree."""
    answers = {side: worker.ask(f"check {name} {variant}") for side, worker, variant in sides}
    if len(set(answers.values())) > 1:
        sys.exit(f"the sides' outputs of '{name}' differ: {answers}")
    return int(next(iter(answers.values())).split()[0])


def make_sides(name, ours, peers):
    elements = check(name, [(f"{side}, {kind}", worker, kind)
                            for side, worker in (("Cohort", ours), ("tf.data", peers[1]))
                            for kind in KINDS])

    def rate(seconds):
        return elements / seconds

    made = {
        "cohort": harness.Side("Cohort", [(kind, ours, f"read {name} {kind}") for kind in KINDS],
                               rate),
        "tf_data": harness.Side(
            "tf.data", [(f"{kind}, in {loop}, {threads} thread{'s' if threads > 1 else ''}", worker,
                         f"read {name} {kind},{loop}")
                        for threads, worker in peers.items() for kind in KINDS
                        for loop in ("python", "function")], rate),
        "limit": harness.Side("read and checksum the bytes", [("", ours, f"limit {name} plain")],
                              rate),
    }
    return {side: made[side] for side in WORKS[name].names()}


def main():
    options = report.parse_options(__doc__, WORKS)
    python = harness.tensorflow_python()
    environment = {**harness.KEEP_FREED_MEMORY, "TF_CPP_MIN_LOG_LEVEL": "3",
                   "CUDA_VISIBLE_DEVICES": ""}
    with tempfile.TemporaryDirectory() as directory:
        input_data.write(directory)

        def tf_data(threads):
            return harness.Worker(python, "-m", "peers.tf_data", directory, threads,
                                  environment=environment)

        with tf_data(1) as one, tf_data(2) as two, \
                harness.Worker(options.program, directory) as ours:
            one.ask("prepare")
            two.ask("version")

            report.run(WORKS, options, lambda name: make_sides(name, ours, {1: one, 2: two}),
                       lambda: [ours.ask("version"), one.ask("version")])


main()

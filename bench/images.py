"""What pictures cost: Cohort's pipelines beside tf.data's, in turn, in one run, on the same files.

Works: decoded, resized, antialiased, augmented. JPEG files of 500 x 375, made for the run and in the page
cache, are read and decoded, resized to 224 x 224 (bilinear, with and without antialias) or cropped at random,
flipped and brightened, and put into batches of 32. Both sides have one thread, and a figure is pictures a
second of the processor: how many one core does. Before it is measured, the number of pictures and the mean of
their numbers must agree, where nothing is random.
"""

import sys
import tempfile

import harness
import report
from report import Comparison, Work


def over_tf_data(title):
    return Work(title, [Comparison("cohort", {"tf_data": 1.5}, None)], text=lambda rate: f"{rate:,.0f}/s")


WORKS = {
    "decoded": over_tf_data("decode, batch"),
    "resized": over_tf_data("decode, resize, batch"),
    "antialiased": over_tf_data("decode, resize with antialias, batch"),
    "augmented": over_tf_data("decode, crop, flip, brighten at random, batch"),
}


def check(name, sides):
    """The number of pictures, on which both sides agree, as on their means."""
    answers = [worker.ask(f"check {name}").split() for worker in sides]
    (count, mean), (other_count, other_mean) = [(int(n), float(m)) for n, m in answers]
    if count != other_count or (name != "augmented" and abs(mean - other_mean) > 1e-4 * mean):
        sys.exit(f"the sides' outputs of '{name}' differ: {answers}")
    return count


def make_sides(name, ours, peer):
    pictures = check(name, [ours, peer])

    def rate(seconds):
        return pictures / seconds

    return {
        "cohort": harness.Side("Cohort", [("", ours, f"read {name}")], rate),
        "tf_data": harness.Side("tf.data", [(f"in {loop}", peer, f"read {name},{loop}")
                                            for loop in ("python", "function")], rate),
    }


def main():
    options = report.parse_options(__doc__, WORKS)
    python = harness.tensorflow_python()
    environment = {**harness.KEEP_FREED_MEMORY, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    with tempfile.TemporaryDirectory() as directory, \
            harness.Worker(options.program, directory, environment={"OMP_NUM_THREADS": "1"}) as ours, \
            harness.Worker(python, "-m", "peers.tf_images", directory, environment=environment) as peer:
        count, size = map(int, ours.ask("write").split())
        print(f"{count} pictures of {size / count / 1000:.0f} kB", flush=True)
        report.run(WORKS, options, lambda name: make_sides(name, ours, peer),
                   lambda: [ours.ask("version"), peer.ask("version")])


main()

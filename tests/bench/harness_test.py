"""What decides the benchmarks' figures must be right before any figure is."""

import contextlib
import io
import json
import os
import shutil
import sys
import tempfile
import time
import types
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

import cores
import harness
import markdown
import report
import samples

ECHO = "import sys\nfor line in sys.stdin: print(line.strip(), flush=True)"


class Turns(unittest.TestCase):
    def test_every_other_round_runs_in_reverse(self):
        order = []
        rounds = harness.alternate({name: lambda name=name: order.append(name) or len(order)
                                    for name in "abc"}, rounds=3)
        self.assertEqual("".join(order), "abccbaabc")
        self.assertEqual(rounds[1], {"a": 6, "b": 5, "c": 4})

    def test_a_worker_answers_and_is_stopped_in_between(self):
        with harness.Worker(sys.executable, "-c", ECHO) as worker:
            for number in ("1.5", "2"):
                self.assertEqual(worker(number), float(number))
                # Blocks until it is stopped.
                state = os.waitid(os.P_PID, worker.process.pid, os.WSTOPPED)
                self.assertEqual(state.si_code, os.CLD_STOPPED)
        self.assertEqual(worker.process.returncode, 0)

    def test_a_worker_that_ends_is_named(self):
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors), self.assertRaises(SystemExit) as ended, \
                harness.Worker(sys.executable, "-c", "exit(3)") as worker:
            worker("train")
        self.assertEqual(ended.exception.code, harness.EX_SOFTWARE)
        self.assertIn("'train'", errors.getvalue())
        self.assertIn("with 3", errors.getvalue())


    def test_each_task_of_a_cluster_has_a_peak(self):
        task = f"""
import os, subprocess, sys
children = []
for job in ("ps", "worker"):
    config = '{{"task": {{"type": "%s", "index": 1}}}}' % job
    children.append(subprocess.Popen([sys.executable, "-c", "import sys; x = b'x' * (32 << 20); sys.stdin.read()"],
                                     stdin=subprocess.PIPE,
                                     env={{**os.environ, "TF_CONFIG": config}}))
{ECHO}
"""
        with harness.Worker(sys.executable, "-c", task, pauses=False) as worker:
            worker.ask("2")
            deadline = time.monotonic() + 30
            while time.monotonic() < deadline:
                peaks = harness.peak_memory(worker.process.pid)
                if len(peaks) == 2 and all(32 < peak < 500 for peak in peaks.values()):
                    break
            self.assertEqual(list(peaks), ["ps 1", "worker 1"])
            self.assertTrue(all(32 < peak < 500 for peak in peaks.values()), peaks)


class Figures(unittest.TestCase):
    ROUNDS = [{"ours": 10, "peer": 5}, {"ours": 4, "peer": 1}, {"ours": 9, "peer": 3}]

    def test_medians_of_the_rounds_that_have_it(self):
        self.assertEqual(harness.medians(self.ROUNDS), {"ours": 9, "peer": 3})
        self.assertEqual(harness.medians([{"a": 1}, {"a": 3, "b": 7}]), {"a": 2, "b": 7})

    def test_ratio_is_taken_within_rounds(self):
        self.assertEqual(harness.ratio(self.ROUNDS, "ours", "peer"), 3)

    def test_the_best_median_is_chosen_not_the_luckiest_turn(self):
        figures = {"steady": iter([5, 5, 5]), "lucky": iter([4, 9, 1]), "slow": iter([2, 2, 2])}
        side = harness.Side("peer", [(label, lambda _, label=label: next(figures[label]), "train")
                                     for label in figures])
        side.choose(seconds=1, times=3)
        self.assertEqual(side.full_title(), "peer [steady]")

    def test_a_candidate_far_behind_takes_one_turn(self):
        figures = {"best": iter([4, 4, 4]), "near": iter([3.1, 9, 9]), "far": iter([2.9])}
        side = harness.Side("peer", [(label, lambda _, label=label: next(figures[label]), "train")
                                     for label in figures])
        side.choose(seconds=1, times=3)
        self.assertEqual(side.full_title(), "peer [near]")
        # Nor where the work is measured again.
        self.assertEqual([label for label, *_ in side.candidates], ["best", "near"])

    def test_a_turn_is_a_command_and_its_answer_a_figure(self):
        commands = []
        side = harness.Side("peer", [("", lambda command: commands.append(command) or 0.25, "empty")],
                            figure=lambda seconds: 1 / seconds)
        self.assertEqual(side.turn(2), 4)
        side.first_loss()
        self.assertEqual(commands, ["empty 2", "loss empty"])


class Report(unittest.TestCase):
    def test_rows_have_ratios_and_verdicts(self):
        work = report.Work("work", [report.Comparison("ours", {"peer": 3.0, "other": None}, least=10)])
        sides = {name: harness.Side(name, [("", None, "")]) for name in ("ours", "peer", "other")}
        rounds = [{"ours": 9, "peer": 3, "other": 1}]
        rows = list(report.rows(work, sides, rounds))
        self.assertEqual([(row["name"], row["ratio"], row["verdict"]) for row in rows],
                         [("ours", None, "MISSED"), ("peer", 3, "met"), ("other", 9, "")])
        self.assertEqual(rows[0]["goal"], "10/s")

    def test_goals_are_beside_the_best_of_several(self):
        work = report.Work("work", [report.Comparison("ours", {("old", "new"): 2.0})])
        self.assertEqual(work.names(), ["ours", "old", "new"])
        sides = {name: harness.Side(name, [("1 thread", None, "")]) for name in work.names()}
        rows = list(report.rows(work, sides, [{"ours": 9, "old": 3, "new": 6}]))
        self.assertEqual([(row["name"], row["ratio"], row["best"], row["verdict"]) for row in rows[1:]],
                         [("old", 3, False, ""), ("new", 1.5, True, "MISSED")])
        said = io.StringIO()
        report.print_table(rows, said)
        self.assertIn("best, MISSED", said.getvalue())
        self.assertIn("0 of 1 goals met", said.getvalue())

    def test_markdown_has_a_column_a_work(self):
        works = [report.Work(title, [report.Comparison("ours", {("old", "new"): 2.0})])
                 for title in ("A", "B")]
        rounds = [{"ours": 9000, "old": 3000, "new": 4500}]
        rows = [row for work in works for row in report.rows(
            work, {name: harness.Side(name.title(), [("1 thread" if name == "new" else "", None, "")])
                   for name in work.names()}, rounds)]
        self.assertEqual(list(markdown.tables(rows)), [
            "| | A | B |", "|---|---|---|",
            "| **Ours** | 9,000/s | 9,000/s |",
            "| Old | 3,000/s: 3.00 | 3,000/s: 3.00 |",
            "| New | 4,500/s: **2.00** (goal 2.00) | 4,500/s: **2.00** (goal 2.00) |",
            "",
            "| at its best with | A | B |", "|---|---|---|",
            "| New | 1 thread | 1 thread |"])

    def test_table_aligns(self):
        lines = list(report.table(["work", "side", "figure"], [["a", "bcdef", "1"]]))
        self.assertEqual(lines, ["work  side   figure", "----  -----  ------",
                                 "a     bcdef       1"])


class Run(unittest.TestCase):
    def test_each_work_is_written_when_it_is_measured(self):
        work = report.Work("work", [report.Comparison("ours", {"peer": 2.0})])
        written, seen = Path(tempfile.mkdtemp()) / "rounds.json", []
        options = types.SimpleNamespace(only=["a", "b"], no_control=True, json=written, rounds=3,
                                        seconds=1, quick=False)

        def make_sides(name):
            seen.append(list(json.loads(written.read_text())["rounds"]) if seen else name)
            return {side: harness.Side(side, [("", lambda _, rate=rate: rate, "train")])
                    for side, rate in (("ours", 8), ("peer", 2))}

        said, progress = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(progress):
            report.run({"a": work, "b": work}, options, make_sides, lambda: ["1.0"])
        self.assertEqual(seen, ["a", ["a"]])
        self.assertIn("NOT A RESULT", said.getvalue())
        self.assertIn("2 of 2 goals met", said.getvalue())
        self.assertEqual([row["ratio"] for row in json.loads(written.read_text())["rows"]],
                         [None, 4, None, 4])
        shutil.rmtree(written.parent)


class Control(unittest.TestCase):
    def test_counts_and_copies(self):
        with cores.Control() as control:
            for work in ("count", "copy"):
                self.assertGreater(control.measure(work, times=1), 0)

    def test_scale(self):
        self.assertEqual(cores.scale([1, 1, 5], [1, 1, 1]), 2)
        self.assertEqual(cores.scale([1, 1, 1], [2, 2, 2]), 1)

    def measure(self, scales):
        """Which measurement was accepted, and its scale."""
        scales, runs = iter(scales), []
        return cores.while_free(lambda: next(scales), lambda: runs.append(1) or len(runs))

    def test_free_before_and_after(self):
        self.assertEqual(self.measure([2.0, 1.8]), (1, 1.8))

    def test_busy_before_or_after_is_measured_again(self):
        self.assertEqual(self.measure([1.7, 1.9, 2.0]), (2, 1.9))
        self.assertEqual(self.measure([2.0, 1.1, 1.9, 2.0]), (3, 1.9))

    def test_busy_throughout_is_refused(self):
        said = io.StringIO()
        with contextlib.redirect_stdout(said), self.assertRaises(SystemExit) as ended:
            self.measure([2.0, 1.79, 2.0, 1.5])
        self.assertEqual(ended.exception.code, harness.EX_TEMPFAIL)
        self.assertIn("1.50", said.getvalue())


class Samples(unittest.TestCase):
    def test_batches_lie_within_the_samples_and_differ(self):
        for batch in (1, 16):
            ranges = list(samples.ranges(batch))
            self.assertEqual(len(set(map(str, ranges))), samples.BATCHES)
            self.assertLessEqual(max(part.stop for pair in ranges for part in pair),
                                 samples.INPUTS * batch)


if __name__ == "__main__":
    unittest.main()

"""What a task answers to GET /metrics is what Prometheus reads: promtool, of Debian's package, checks it."""

import os
import random
import subprocess

MEMBERS = 200


def promtool(text):
    return subprocess.run([os.environ["COHORT_PROMTOOL"], "check", "metrics"],
                          input=text.encode(), capture_output=True, timeout=60)


def random_name(rng):
    return "".join(rng.choice("ab \"\\\n\t{},=#é语\x01") for _ in range(rng.randint(1, 20)))


def random_figure(rng):
    return rng.choice(["nan", "inf", "-inf", "0", "-0.0", "5e-309", "-1e308", repr(rng.gauss(0, 1e6))])


def random_member(rng, index):
    return {"job": rng.choice(["worker", "ps"]), "index": index, "alive": rng.random() < 0.8,
            "state_seconds": rng.choice([None, 0, rng.expovariate(1e-4)]),
            "silence_seconds": rng.choice([None, 0, rng.expovariate(1)]),
            "figures": {random_name(rng): random_figure(rng) for _ in range(rng.randint(0, 5))}}


def test_promtool_has_nothing_against_it(probe):
    rng = random.Random(1)
    view = {"generation": 3, "members": [random_member(rng, index) for index in range(MEMBERS)],
            "stale_refused": 7}
    text = probe("prometheus_text", view)["text"]
    assert text.count("\ncohort_task_up{") == MEMBERS
    checked = promtool(text)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")


def test_nor_where_little_is_known(probe):
    text = probe("prometheus_text", {"generation": 0, "members": [], "stale_refused": None})["text"]
    checked = promtool(text)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")


def test_promtool_would_find_a_broken_line(probe):
    text = probe("prometheus_text", {"generation": 0, "members": [], "stale_refused": 0})["text"]
    assert promtool(text + 'cohort_task_up{job="a"b"} 1\n').returncode != 0

"""The cases: columns, and the preprocessing function of each in terms of tensorflow-transform.

cases.cc has the same functions, under the same names, in terms of cohort/transform.
"""

import dataclasses
import math
import random
from typing import Callable

import tensorflow as tf
import tensorflow_transform as tft

from columns import Column, floats, ints, pairs, ragged, strings

NAN, INF = math.nan, math.inf


@dataclasses.dataclass
class Case:
    name: str
    columns: dict
    function: Callable
    refused: bool = False  # both sides must refuse it
    # Rows of a batch: few, so that partial results are merged.
    batch: int = 4
    # Its outputs are quantiles of "x" whose ranks may be wrong by this part of all values.
    epsilon: float = None


CASES = {}


def case(name, columns, refused=False, **more):
    def add(function):
        assert name not in CASES, name
        CASES[name] = Case(name, columns, function, refused, **more)
        return function
    return add


def same_function(names_and_columns, refused=False):
    """One function under several names, each with its own columns."""
    def add(function):
        for name, columns in names_and_columns.items():
            case(name, columns, refused)(function)
        return function
    return add


def each_row(constant, column):
    """An analysis' result as an output, which must have a row dimension. cases.cc keeps it beside them."""
    constant = tf.convert_to_tensor(constant)
    rows = (tf.cast(column.dense_shape[0], tf.int32) if isinstance(column, tf.SparseTensor) else
            tf.shape(column)[0])
    return tf.tile(constant[tf.newaxis], tf.concat([[rows], tf.ones([tf.rank(constant)], tf.int32)], 0))


def _normal(count, seed, mean=0.0, deviation=1.0):
    numbers = random.Random(seed)
    return [numbers.gauss(mean, deviation) for _ in range(count)]


def _words(count, different, seed):
    """Words of which the first are frequent, many equally so."""
    numbers = random.Random(seed)
    return [f"w{int(different * numbers.random() ** 3)}" for _ in range(count)]


WORDS = strings(*"a b c b c c d d hello é Zz".split(), "", "")
LINES = strings("a b c", "", "one", "x  x x", "b a b", "I like pie pie pie", "yum yum pie", "pie")
NUMBERS = {"dense": floats(1, 2, 4, -3, 8, 0.5, 0, 9), "negative": floats(-5, -4, -4.5, -1e-3),
           "constant": floats(3, 3, 3, 3, 3), "one_row": floats(7.25),
           "large": floats(1e8, 1, 1, 1, -1e8, 2.5e8), "small": floats(1e-30, 2e-30, -3e-30),
           "normal": floats(*_normal(300, 1, 10, 2)),
           "sparse": ragged("float32", [1], [], [2, 4], [], [], [-7, 0.25, 3], [1]),
           "missing": ragged("float32", [], [], [], [], []),
           "ints": ints(1, 2, 4, -3, 8, 0, 9), "sparse_ints": ragged("int64", [1], [], [2, 4], [9]),
           "large_ints": ints(2**40, 2**40 + 1, 2**40 - 5, -2**40), "equal_ints": ints(5, 5, 5),
           "missing_ints": ragged("int64", [], [], [])}
INFINITE = {"nan": floats(NAN, 1, 2, 4, NAN, 8), "all_nan": floats(NAN, NAN),
            "infinities": floats(1, -INF, 3, INF, 2)}


# Sums and extremes.

@same_function({f"analyzers_{kind}": {"x": column} for kind, column in
                {**NUMBERS, **INFINITE,
                 "pairs": pairs("int64", [1, 10], [3, 20], [5, 60], [7, -2], [0, 0])}.items()})
def analyzers(inputs):
    x = inputs["x"]
    return {name: each_row(getattr(tft, name)(x), x)
            for name in ("min", "max", "mean", "var", "sum", "size")}


@case("analyzers_elementwise", {"x": pairs("float32", [1, 10], [3, 20], [5, 60], [7, -2], [0, 0])})
def analyzers_elementwise(inputs):
    x = inputs["x"]
    return {name: each_row(getattr(tft, name)(x, reduce_instance_dims=False), x)
            for name in ("min", "max", "mean", "var", "sum", "size")}


@case("mean_of_strings", {"x": strings("a", "b")}, refused=True)
def mean_of_strings(inputs):
    return {"y": each_row(tft.mean(inputs["x"]), inputs["x"])}


# Scales.

@same_function({f"scale_{kind}": {"x": column} for kind, column in
                {**NUMBERS, "nan": INFINITE["nan"], "infinities": INFINITE["infinities"]}.items()})
def scale(inputs):
    x = inputs["x"]
    return {"z": tft.scale_to_z_score(x), "unit": tft.scale_to_0_1(x),
            "range": tft.scale_by_min_max(x, output_min=-1.0, output_max=3.0)}


@case("scale_elementwise", {"x": pairs("float32", [1, 10], [3, 10], [5, 10], [8, 10], [9, 10])})
def scale_elementwise(inputs):
    x = inputs["x"]
    return {"z": tft.scale_to_z_score(x, elementwise=True),
            "unit": tft.scale_to_0_1(x, elementwise=True)}


@case("scale_in_two_phases", {"x": floats(*_normal(50, 2))})
def scale_in_two_phases(inputs):
    return {"y": tft.scale_to_0_1(tft.scale_to_z_score(inputs["x"]))}


@case("scale_backwards", {"x": floats(1, 2)}, refused=True)
def scale_backwards(inputs):
    return {"y": tft.scale_by_min_max(inputs["x"], output_min=1.0, output_max=1.0)}


# Quantiles and buckets.

QUANTILES = {"ten": floats(*range(1, 11)), "hundred": floats(*range(100, 0, -1)),
             "three": floats(1, 2, 3), "constant": floats(7, 7, 7, 7, 7), "nan": INFINITE["nan"],
             "infinities": INFINITE["infinities"], "all_nan": INFINITE["all_nan"],
             "ints": ints(5, 1, 9, 2, 2, 7), "normal": floats(*_normal(500, 3))}


@same_function({f"quantiles_{kind}": {"x": column} for kind, column in QUANTILES.items()})
def quantiles(inputs):
    x = inputs["x"]
    return {"four": each_row(tft.quantiles(x, 4, 0.01)[0], x),
            "ten": each_row(tft.quantiles(x, 10, 0.01)[0], x)}


# More values than a sketch keeps.
@case("quantiles_of_many", {"x": floats(*_normal(40000, 5), *_normal(5000, 6, 100, 0.5))}, batch=500,
      epsilon=0.01)
def quantiles_of_many(inputs):
    return quantiles(inputs)


@case("quantiles_weighted", {"x": floats(*range(12)),
                             "w": floats(1, 0, NAN, 1, -3, 1, 2, 2.5, 0.125, 4, 1, 1)})
def quantiles_weighted(inputs):
    x = inputs["x"]
    return {"four": each_row(tft.quantiles(x, 4, 0.01, weights=inputs["w"])[0], x)}


@case("quantiles_elementwise", {"x": pairs("float32", [1, 10], [2, 20], [3, 30], [4, 40], [5, 5])})
def quantiles_elementwise(inputs):
    x = inputs["x"]
    return {"three": each_row(tft.quantiles(x, 3, 0.01, reduce_instance_dims=False), x)}


@same_function({f"bucketize_{kind}": {"x": column} for kind, column in
                {**QUANTILES, "sparse": NUMBERS["sparse"], "missing": NUMBERS["missing"]}.items()})
def bucketize(inputs):
    x = inputs["x"]
    return {"two": tft.bucketize(x, 2), "four": tft.bucketize(x, 4)}


@case("bucketize_weighted", {"x": floats(*range(10)), "w": floats(*range(10, 0, -1))})
def bucketize_weighted(inputs):
    return {"y": tft.bucketize(inputs["x"], 3, weights=inputs["w"])}


@case("bucketize_elementwise", {"x": pairs("float32", [1, 10], [2, 20], [3, 30], [4, 40], [5, 5])})
def bucketize_elementwise(inputs):
    return {"y": tft.bucketize(inputs["x"], 3, elementwise=True)}


@case("bucketize_none", {"x": floats(1, 2)}, refused=True)
def bucketize_none(inputs):
    return {"y": tft.bucketize(inputs["x"], 0)}


@case("bucketize_strings", {"x": strings("a", "b")}, refused=True)
def bucketize_strings(inputs):
    return {"y": tft.bucketize(inputs["x"], 2)}


@same_function({
    "apply_buckets_dense": {"x": floats(0, .5, 1, 1.5, 2, 2.5, 3, 4, NAN, INF, -INF)},
    "apply_buckets_sparse": {"x": ragged("float32", [1], [], [2, 3.5, NAN])},
    "apply_buckets_pairs": {"x": pairs("float32", [0, 1], [2, 3], [9, -9])},
    "apply_buckets_ints": {"x": ints(0, 1, 2, 3, 4)}})
def apply_buckets(inputs):
    x = inputs["x"]
    return {"three": tft.apply_buckets(x, tf.constant([[1.0, 2.0, 3.0]])),
            "repeated": tft.apply_buckets(x, tf.constant([[1.0, 1.0, 2.5]]))}


# Vocabularies.

def _vocabularies(**more):
    return {"words": WORDS, "one": strings("x", "x", "x"), "only_empty": strings("", ""),
            "odd_bytes": strings("a\nb", "a\rb", "", "a b", " ", "a\tb", b"\xff\xfe", "a\0b", "a\x0bb",
                                 "a\u2028b", "a\x85b", b"\x00", b"\x80"),
            "sparse": ragged("string", ["a", "b"], [], ["b", "c", "c"], [""]),
            "missing": ragged("string", [], [], []),
            "pairs": pairs("string", ["a", "b"], ["b", "c"], ["q", "b"]),
            "many": strings(*_words(2000, 300, 4)), "ints": ints(1, 1, 10, 9, 2, -5, -5, 100, 20),
            "sparse_ints": ragged("int64", [3, 3], [], [-1, 4, 3]), **more}


@same_function({f"vocabulary_{kind}": {"x": column} for kind, column in _vocabularies().items()})
def vocabulary_cases(inputs):
    x = inputs["x"]
    apply = tft.compute_and_apply_vocabulary
    return {"plain": apply(x), "top": apply(x, top_k=2, default_value=-7),
            "hashed": apply(x, top_k=2, num_oov_buckets=3, vocab_filename="hashed words"),
            "frequent": apply(x, frequency_threshold=2, num_oov_buckets=1),
            "none": apply(x, frequency_threshold=5000, num_oov_buckets=2, vocab_filename="none")}


@case("vocabulary_frequencies", {"x": WORDS})
def vocabulary_frequencies(inputs):
    x = inputs["x"]
    tft.vocabulary(x, store_frequency=True, vocab_filename="frequencies")
    return {"y": tft.compute_and_apply_vocabulary(x, store_frequency=True, top_k=3)}


@case("vocabulary_weighted", {"x": strings(*"abacdefb"),
                              "w": floats(1.5, .5, .25, 3, 0, -1, 1.75, 1.25)})
def vocabulary_weighted(inputs):
    x, w = inputs["x"], inputs["w"]
    apply = tft.compute_and_apply_vocabulary
    return {"all": apply(x, weights=w, store_frequency=True, vocab_filename="all"),
            "some": apply(x, weights=w, frequency_threshold=1.75, vocab_filename="some"),
            "top": apply(x, weights=w, top_k=2, vocab_filename="top")}


@case("vocabulary_options", {"x": WORDS})
def vocabulary_options(inputs):
    x = inputs["x"]
    apply = tft.compute_and_apply_vocabulary
    return {"fraction": apply(x, frequency_threshold=1.5, vocab_filename="b:c  d-e_f.txt"),
            "default": apply(x, top_k=1, default_value=2**62, vocab_filename="default"),
            "both": apply(x, top_k=2, frequency_threshold=3, vocab_filename="both"),
            "reserved": apply(x, reserved_tokens=["<pad>", "c", "zz"], top_k=3,
                              vocab_filename="reserved")}


@case("vocabulary_of_another_column", {"x": strings(*"abcaab"), "y": strings(*"bbzqaz")})
def vocabulary_of_another_column(inputs):
    words = tft.vocabulary(inputs["x"], vocab_filename="words")
    return {"x": tft.apply_vocabulary(inputs["x"], words),
            "y": tft.apply_vocabulary(inputs["y"], words, num_oov_buckets=2),
            "default": tft.apply_vocabulary(inputs["y"], words, default_value=9)}


@case("vocabulary_of_ngrams", {"x": LINES})
def vocabulary_of_ngrams(inputs):
    words = tf.compat.v1.strings.split(inputs["x"])
    return {"y": tft.compute_and_apply_vocabulary(tft.ngrams(words, (1, 2), " "), top_k=5,
                                                  vocab_filename="ngrams")}


@case("vocabulary_of_floats", {"x": floats(1, 2)}, refused=True)
def vocabulary_of_floats(inputs):
    return {"y": tft.compute_and_apply_vocabulary(inputs["x"])}


@case("vocabulary_top_zero", {"x": WORDS}, refused=True)
def vocabulary_top_zero(inputs):
    return {"y": tft.compute_and_apply_vocabulary(inputs["x"], top_k=0)}


@case("vocabulary_negative_threshold", {"x": WORDS}, refused=True)
def vocabulary_negative_threshold(inputs):
    return {"y": tft.compute_and_apply_vocabulary(inputs["x"], frequency_threshold=-1)}


# Strings of a row.

@same_function({"hash_strings_dense": {"x": strings("a", "b", "", "hello", "é", b"\xff", "x" * 300)},
                "hash_strings_sparse": {"x": ragged("string", ["a"], [], ["b", "", "long " * 20])},
                "hash_strings_pairs": {"x": pairs("string", ["a", "b"], ["", "d"])}})
def hash_strings(inputs):
    x = inputs["x"]
    return {"fast": tft.hash_strings(x, 10), "many": tft.hash_strings(x, 2**40),
            "strong": tft.hash_strings(x, 1000, key=[123, 456])}


@case("hash_strings_of_ints", {"x": ints(1, 2)}, refused=True)
def hash_strings_of_ints(inputs):
    return {"y": tft.hash_strings(inputs["x"], 10)}


TOKENS = ragged("string", ["a", "b", "c"], [], ["one"], ["x", "x", "x"], ["b", "a", "b"],
                ["", "a", ""], [""], "the rat in the rat in the hat".split())


@case("ngrams", {"x": TOKENS})
def ngrams(inputs):
    x = inputs["x"]
    return {"one_two": tft.ngrams(x, (1, 2), "_"), "two_three": tft.ngrams(x, (2, 3), ""),
            "three": tft.ngrams(x, (3, 3), " "), "to_five": tft.ngrams(x, (1, 5), "-")}


@case("ngrams_of_missing", {"x": ragged("string", [], [], [])})
def ngrams_of_missing(inputs):
    x = inputs["x"]
    return {"y": tft.ngrams(x, (1, 2), "_"), "bag": tft.bag_of_words(x, (1, 2), "_")}


@case("ngrams_from_zero", {"x": TOKENS}, refused=True)
def ngrams_from_zero(inputs):
    return {"y": tft.ngrams(inputs["x"], (0, 1), "_")}


@case("bag_of_words", {"x": TOKENS})
def bag_of_words(inputs):
    x = inputs["x"]
    return {"words": tft.bag_of_words(x, (1, 1), " "), "two": tft.bag_of_words(x, (1, 2), "_")}


@same_function({"word_count_strings": {"x": TOKENS}, "word_count_floats": {"x": NUMBERS["sparse"]}})
def word_count(inputs):
    return {"y": tft.word_count(inputs["x"])}


@same_function({"deduplicate_sparse": {"x": ragged("string", ["b", "a", "b"], [], ["c", "c", "d", "a"])},
                "deduplicate_dense": {"x": pairs("string", ["b", "a", "b"], ["c", "c", "c"])},
                "deduplicate_ints": {"x": ragged("int64", [3, -1, 3], [], [0])},
                "deduplicate_floats": {"x": ragged("float32", [NAN, NAN, 1, 0, -0.0, 1], [INF, INF])}})
def deduplicate(inputs):
    return {"y": tft.deduplicate_tensor_per_row(inputs["x"])}


@case("tfidf", {"x": LINES})
def tfidf(inputs):
    words = tf.compat.v1.strings.split(inputs["x"])
    all_words = tft.compute_and_apply_vocabulary(words, vocab_filename="all")
    few = tft.compute_and_apply_vocabulary(words, top_k=2, num_oov_buckets=1, vocab_filename="few")
    lost = tft.compute_and_apply_vocabulary(words, top_k=2, vocab_filename="lost")
    outputs = {}
    for name, (ids, weights) in {"smooth": tft.tfidf(all_words, 12), "few": tft.tfidf(few, 3),
                                 "raw": tft.tfidf(all_words, 12, smooth=False),
                                 "lost": tft.tfidf(lost, 2)}.items():
        outputs |= {f"{name}_ids": ids, f"{name}_weights": weights}
    return outputs


# Counts.

@same_function({"histogram_dense": {"x": floats(0, .1, .15, .5, .99, 1, 1.5, -3, 2.5, 3, 9)},
                "histogram_nan": {"x": floats(NAN, INF, -INF, 1, 2)},
                "histogram_sparse": {"x": ragged("float32", [0], [], [1, 1, 2.75])},
                "histogram_ints": {"x": ints(0, 1, 0, 1, 0, 3, 0, 1)}})
def histogram(inputs):
    x = inputs["x"]
    outputs = {}
    for name, boundaries in {"unit": None, "given": [1.0, 2.0, 3.0], "many": [0, 1, 2, 3, 4]}.items():
        counts, edges = tft.histogram(x, boundaries)
        outputs |= {f"{name}_counts": each_row(counts, x), f"{name}_boundaries": each_row(edges[0], x)}
    return outputs


@same_function({"histogram_of_range": {"x": floats(0, 1, 2, 3, 10)},
                "histogram_of_range_ints": {"x": ints(-4, 0, 4, 9, 9)}})
def histogram_of_range(inputs):
    counts, edges = tft.histogram(inputs["x"], boundaries=5)
    return {"counts": each_row(counts, inputs["x"]), "boundaries": each_row(edges[0], inputs["x"])}


@same_function({"histogram_categorical": {"x": strings("b", "a", "b", "", "é", "B")},
                "histogram_categorical_ints": {"x": ints(3, -1, 10, 3)}})
def histogram_categorical(inputs):
    counts, keys = tft.histogram(inputs["x"], categorical=True)
    return {"counts": each_row(counts, inputs["x"]), "keys": each_row(keys, inputs["x"])}


@same_function({"count_per_key_dense": {"x": strings("b", "a", "b", "", "é", "B", b"\xff")},
                "count_per_key_ints": {"x": ints(10, 9, 9, -3, 100)},
                "count_per_key_sparse": {"x": ragged("string", ["b"], [], ["a", "b"])}})
def count_per_key(inputs):
    keys, counts = tft.count_per_key(inputs["x"])
    return {"keys": each_row(keys, inputs["x"]), "counts": each_row(counts, inputs["x"])}


@case("nothing", {"x": floats(1, 2)}, refused=True)
def nothing(_inputs):
    return {}


assert isinstance(WORDS, Column) and len(CASES) > 40

"""StringLookup and IntegerLookup give Keras 2.15's vocabularies and outputs, on layers and inputs
made at random."""

import random

import numpy as np
import pytest
import tensorflow as tf

LAYERS = 150
MODES = ["int", "int", "int", "one_hot", "multi_hot", "count", "tf_idf"]


class Words:
    layer = "StringLookup"
    dtype = "string"
    mask = ""
    learned_mask = "m"

    def __init__(self, rng):
        self._rng = rng

    def token(self):
        length = self._rng.choice([1, 1, 2, 2, 3, 5, 9, 17, 40, 65, 150])
        return "".join(self._rng.choice("abcxyzé \t") for _ in range(length))

    def as_input(self, tokens, shape):
        return tf.constant(np.array(tokens, object).reshape(shape), tf.string)

    def value(self, token):
        return token.decode() if isinstance(token, bytes) else str(token)


class Numbers:
    layer = "IntegerLookup"
    dtype = "int64"
    mask = 0
    learned_mask = 1

    def __init__(self, rng):
        self._rng = rng

    def token(self):
        return self._rng.choice([self._rng.randint(1, 30), self._rng.randint(-30, -2),
                                 self._rng.randint(-2**63, 2**63 - 1)])

    def as_input(self, tokens, shape):
        return tf.constant(np.array(tokens, np.int64).reshape(shape), tf.int64)

    def value(self, token):
        return int(token)


def random_shape(rng, mode):
    if mode == "one_hot":
        return rng.choice([(), (4,), (3, 1), (2, 2)])  # the last is an error
    if mode == "int":
        return rng.choice([(), (0,), (1,), (5,), (2, 3), (2, 1, 2)])
    return rng.choice([(), (5,), (2, 3), (1, 4), (2, 1, 2)])


def random_case(rng, kind, path):
    """A request to the probe."""
    tokens = sorted({kind.token() for _ in range(rng.randint(1, 12))}, key=str)
    rng.shuffle(tokens)
    mode = rng.choice(MODES)
    source = rng.choice(["vocabulary", "vocabulary", "file", "adapt"])
    options = {"num_oov_indices": rng.choice([0, 1, 1, 1, 2, 5]), "output_mode": mode}
    if rng.random() < 0.4:
        options["mask_token"] = kind.mask if source != "adapt" else kind.learned_mask
    if mode == "int" and rng.random() < 0.2:
        options["invert"] = True
    if source == "adapt" and rng.random() < 0.5:
        options["max_tokens"] = rng.randint(options["num_oov_indices"] + 2, 12)
    if mode != "int" and rng.random() < 0.3:
        options["max_tokens"] = len(tokens) + options["num_oov_indices"] + rng.randint(2, 5)
        options["pad_to_max_tokens"] = True

    request = {"layer": kind.layer, "options": options}
    if source == "adapt":
        # Rows of one number of distinct tokens: Keras 2.15 fails on others for tf_idf.
        width = min(3, len(tokens))
        rows = [rng.sample(tokens, width) for _ in range(rng.randint(1, 20))]
        request["adapt"] = {"dtype": kind.dtype, "shape": [len(rows), width],
                            "values": [token for row in rows for token in row]}
    elif source == "file" and mode != "tf_idf":
        end = rng.choice(["\n", "\r\n"])
        path.write_bytes((end.join(map(str, tokens)) + rng.choice(["", end])).encode())
        options["file"] = str(path)
    else:
        options["vocabulary"] = list(tokens)
        if mode == "tf_idf":
            options["idf_weights"] = [round(rng.random(), 3) for _ in tokens]

    inputs = []
    for _ in range(3):
        shape = random_shape(rng, mode)
        size = int(np.prod(shape, dtype=int))
        if options.get("invert"):
            values = [rng.randint(-2, len(tokens) + 5) for _ in range(size)]
            inputs.append({"dtype": "int64", "shape": list(shape), "values": values})
            continue
        known = rng.choice([0.5, 1.0])
        values = [rng.choice(tokens) if rng.random() < known else
                  rng.choice([kind.token(), kind.mask, kind.learned_mask]) for _ in range(size)]
        inputs.append({"dtype": kind.dtype, "shape": list(shape), "values": values})
    request["inputs"] = inputs
    return request


def keras_answer(kind, request):
    options = dict(request["options"])
    if "file" in options:
        options["vocabulary"] = options.pop("file")
    layer = getattr(tf.keras.layers, request["layer"])(**options)
    if "adapt" in request:
        data = request["adapt"]
        layer.adapt(kind.as_input(data["values"], data["shape"]))
    outputs = []
    for given in request["inputs"]:
        dtype = tf.string if given["dtype"] == "string" else tf.int64
        values = np.array(given["values"], object if dtype == tf.string else np.int64)
        try:
            outputs.append(layer(tf.constant(values.reshape(given["shape"]), dtype)).numpy())
        except (ValueError, tf.errors.InvalidArgumentError):
            outputs.append(None)
    return {"vocabulary": [kind.value(token) for token in layer.get_vocabulary()],
            "tokens": [kind.value(token) for token in layer.get_vocabulary(False)],
            "size": layer.vocabulary_size(), "outputs": outputs}


@pytest.mark.parametrize("kind_of", [Words, Numbers])
@pytest.mark.parametrize("seed", range(LAYERS))
def test_follows_keras(probe, tmp_path, kind_of, seed):
    rng = random.Random(f"{kind_of.layer} {seed}")
    kind = kind_of(rng)
    request = random_case(rng, kind, tmp_path / "vocabulary.txt")
    expected = keras_answer(kind, request)
    ours = probe("lookup", request)
    for key in ["vocabulary", "tokens", "size"]:
        assert ours[key] == expected[key], key
    for output, keras_output in zip(ours["outputs"], expected["outputs"], strict=True):
        if keras_output is None:
            assert output == {"error": "INVALID_ARGUMENT"}
        elif output.get("dtype") == "string":
            assert output["values"] == [token.decode() for token in np.ravel(keras_output)]
            assert tuple(output["shape"]) == np.shape(keras_output)
        else:
            assert output["dtype"] == str(keras_output.dtype)
            assert tuple(output["shape"]) == keras_output.shape
            np.testing.assert_allclose(output["values"], keras_output.reshape(-1), rtol=1e-6)


def test_the_layers_cover_their_options(tmp_path):
    """A generator that only made plain layers would prove little."""
    seen = set()
    for kind_of in [Words, Numbers]:
        for seed in range(LAYERS):
            rng = random.Random(f"{kind_of.layer} {seed}")
            options = random_case(rng, kind_of(rng), tmp_path / "vocabulary.txt")["options"]
            seen.update(options)
            seen.add(options["output_mode"])
            seen.add(min(options["num_oov_indices"], 2))
    assert seen >= {"vocabulary", "file", "mask_token", "invert", "max_tokens",
                    "pad_to_max_tokens", "idf_weights", *MODES, 0, 1, 2}


REFUSED = [
    {"vocabulary": ["a", "b", "a"]},
    {"vocabulary": []},
    {"vocabulary": ["a", "m"], "mask_token": "m"},
    {"vocabulary": ["a", "[UNK]"], "invert": True},
    {"vocabulary": ["a", "b"], "max_tokens": 2},
    {"file": "/nowhere/vocabulary.txt"},
    {"num_oov_indices": -1},
    {"max_tokens": 1},
    {"output_mode": "hot"},
    {"output_mode": "count", "invert": True},
    {"output_mode": "count", "pad_to_max_tokens": True},
    {"vocabulary": ["a"], "output_mode": "tf_idf"},
    {"vocabulary": ["a"], "idf_weights": [1.0]},
    {"vocabulary": ["a"], "output_mode": "tf_idf", "idf_weights": [1.0, 2.0]},
]


@pytest.mark.parametrize("options", REFUSED, ids=str)
def test_refuses_what_keras_refuses(probe, options):
    keras_options = dict(options)
    if "file" in keras_options:
        keras_options["vocabulary"] = keras_options.pop("file")
    with pytest.raises(ValueError):
        tf.keras.layers.StringLookup(**keras_options)
    ours = probe("lookup", {"layer": "StringLookup", "options": options, "inputs": []})
    assert ours["error"] == "INVALID_ARGUMENT"

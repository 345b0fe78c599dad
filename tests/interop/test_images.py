"""cohort::image and cohort::io give the results of tf.image and tf.io, on images made at random."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from keras.src.layers.preprocessing.image_preprocessing import transform

from conftest import as_json, from_json

METHODS = ["bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic"]


def images(rng, shape, dtype):
    if np.issubdtype(dtype, np.integer):
        return rng.integers(0, 256, shape).astype(dtype)
    return (rng.random(shape) * 255).astype(dtype)


def compare(probe, op, inputs, expected, options=None, gradient=None, rtol=0.0, atol=0.0):
    answer = probe("image", {"op": op, "inputs": [as_json(value) for value in inputs], "options": options or {},
                             "gradient": gradient is not None})
    assert "error" not in answer, answer
    expected = np.asarray(expected)
    assert answer["shape"] == list(expected.shape), (op, options)
    assert answer["dtype"] == str(expected.dtype), (op, options)
    np.testing.assert_allclose(from_json(answer), expected, rtol=rtol, atol=atol, err_msg=f"{op} {options}")
    if gradient is not None:
        np.testing.assert_allclose(from_json(answer["gradient"]), gradient, rtol=1e-4, atol=1e-4)


def refused(probe, op, inputs, options=None):
    answer = probe("image", {"op": op, "inputs": [as_json(value) for value in inputs], "options": options or {}})
    return answer.get("error")


def gradient_of(function, image):
    image = tf.constant(image)
    with tf.GradientTape() as tape:
        tape.watch(image)
        result = function(image)
        weights = tf.reshape(tf.cast(tf.range(tf.size(result)) % 7 - 3, result.dtype), tf.shape(result))
        loss = tf.reduce_sum(result * weights)
    return result, tape.gradient(loss, image).numpy()


@pytest.mark.parametrize("method", METHODS)
def test_resize(probe, method):
    rng = np.random.default_rng(1)
    shapes = [((7, 9, 3), (4, 5)), ((5, 6, 1), (11, 13)), ((2, 12, 8, 3), (5, 17)), ((3, 3, 4), (3, 3)),
              ((1, 1, 3), (4, 4)), ((33, 40, 3), (8, 7)), ((6, 50, 3), (29, 3)), ((10, 10, 2), (1, 1))]
    for (shape, size), dtype, antialias in itertools.product(
            shapes, [np.uint8, np.float32, np.int32, np.float64], [False, True]):
        data = images(rng, shape, dtype)
        expected = tf.image.resize(data, size, method=method, antialias=antialias)
        # Other libraries' sines and exponentials differ in their last digit.
        rtol = 2e-6 if method in ["lanczos3", "lanczos5", "gaussian"] else 0
        compare(probe, "resize", [data], expected, {"size": size, "method": method, "antialias": antialias},
                rtol=rtol, atol=100 * rtol)


def test_resize_keeps_the_ratio_of_its_sides(probe):
    rng = np.random.default_rng(2)
    for shape, size in [((7, 9, 3), (20, 20)), ((30, 11, 3), (17, 16)), ((5, 5, 1), (3, 9)), ((11, 30, 2), (13, 25))]:
        data = images(rng, shape, np.float32)
        expected = tf.image.resize(data, size, preserve_aspect_ratio=True)
        compare(probe, "resize", [data], expected, {"size": size, "preserve_aspect_ratio": True})
        for method in ["bilinear", "nearest", "area"]:
            expected = tf.image.resize_with_pad(data, *size, method=method, antialias=method == "bilinear")
            compare(probe, "resize_with_pad", [data], expected,
                    {"size": size, "method": method, "antialias": method == "bilinear"})


def test_gradients_of_resize(probe):
    rng = np.random.default_rng(3)
    data = images(rng, (2, 7, 9, 3), np.float32)
    for method, antialias, size in [("bilinear", False, (4, 5)), ("bilinear", True, (4, 5)), ("nearest", False, (9, 4)),
                                    ("bicubic", False, (11, 5)), ("lanczos3", True, (4, 12))]:
        result, gradient = gradient_of(
            lambda x: tf.image.resize(x, size, method=method, antialias=antialias), data)
        compare(probe, "resize", [data], result, {"size": size, "method": method, "antialias": antialias}, gradient,
                rtol=1e-4, atol=1e-3)


def test_crops_pads_and_flips(probe):
    rng = np.random.default_rng(4)
    for shape, dtype in itertools.product([(7, 10, 3), (2, 8, 5, 1)], [np.uint8, np.float32]):
        data = images(rng, shape, dtype)
        compare(probe, "crop_to_bounding_box", [data], tf.image.crop_to_bounding_box(data, 1, 2, 4, 3),
                {"box": [1, 2, 4, 3]})
        compare(probe, "pad_to_bounding_box", [data], tf.image.pad_to_bounding_box(data, 1, 2, 12, 14),
                {"box": [1, 2, 12, 14]})
        for size in [(3, 3), (4, 12), (13, 2), (12, 13), (5, 6), (8, 9)]:
            compare(probe, "resize_with_crop_or_pad", [data], tf.image.resize_with_crop_or_pad(data, *size),
                    {"size": size})
        for fraction in [0.1, 0.3, 0.5, 0.77, 1.0]:
            compare(probe, "central_crop", [data], tf.image.central_crop(data, fraction), {"fraction": fraction})
        for op in ["flip_left_right", "flip_up_down", "transpose"]:
            compare(probe, op, [data], getattr(tf.image, op)(data))
        for k in [-1, 0, 1, 2, 3, 4, 7]:
            compare(probe, "rot90", [data], tf.image.rot90(data, k), {"k": k})
    data = images(rng, (4, 4, 1), np.float32)
    for op, options in [("crop_to_bounding_box", {"box": [1, 0, 4, 1]}), ("crop_to_bounding_box", {"box": [-1, 0, 2, 1]}),
                        ("pad_to_bounding_box", {"box": [1, 0, 4, 9]}), ("central_crop", {"fraction": 0.0}),
                        ("central_crop", {"fraction": 1.5}), ("resize", {"size": [0, 3]}),
                        ("resize", {"size": [3, 3], "method": "cubic"})]:
        assert refused(probe, op, [data], options) == "INVALID_ARGUMENT", (op, options)


@pytest.mark.parametrize("method", ["bilinear", "nearest"])
def test_crop_and_resize(probe, method):
    rng = np.random.default_rng(16)
    for shape, dtype, size in itertools.product([(2, 7, 9, 3), (3, 1, 5, 1)], [np.uint8, np.float32],
                                                [(4, 5), (1, 6), (11, 1)]):
        data = images(rng, shape, dtype)
        boxes = rng.uniform(-0.3, 1.3, (6, 4)).astype(np.float32)
        boxes[0] = [0, 0, 1, 1]
        index = rng.integers(0, shape[0], 6).astype(np.int32)
        expected = tf.image.crop_and_resize(data, boxes, index, size, method, 3.5)
        compare(probe, "crop_and_resize", [data, boxes, index], expected,
                {"size": size, "method": method, "outside": 3.5}, rtol=1e-6, atol=1e-4)
    assert refused(probe, "crop_and_resize", [data, boxes, index + 3],
                   {"size": [2, 2], "method": method, "outside": 0.0}) == "INVALID_ARGUMENT"


def random_transforms(rng, count):
    small = rng.normal(0, 0.4, (count, 8)).astype(np.float32)
    small[:, [0, 4]] += 1
    small[:, [2, 5]] *= 20
    small[:, [6, 7]] *= 0.02
    return small


@pytest.mark.parametrize("interpolation", ["bilinear", "nearest"])
def test_projective_transform(probe, interpolation):
    rng = np.random.default_rng(5)
    for fill_mode, shape, dtype in itertools.product(["reflect", "wrap", "constant", "nearest"],
                                                     [(3, 7, 9, 3), (3, 12, 5, 1), (1, 1, 1, 2)],
                                                     [np.float32, np.uint8, np.int32, np.float64]):
        data = images(rng, shape, dtype)
        for size in [None, (4, 11)]:
            transforms = random_transforms(rng, shape[0])
            expected = transform(data, transforms, fill_mode=fill_mode, fill_value=2.0, interpolation=interpolation,
                                 output_shape=size)
            options = {"fill_mode": fill_mode, "fill_value": 2.0, "interpolation": interpolation}
            if size:
                options["output_shape"] = size
            compare(probe, "projective_transform", [data, transforms], expected, options, rtol=1e-6, atol=1e-4)


def test_gradients_of_projective_transform(probe):
    rng = np.random.default_rng(6)
    data = images(rng, (2, 6, 6, 2), np.float32)
    for interpolation, (dx, dy) in itertools.product(["bilinear", "nearest"], [(1, 0), (-2, 3)]):
        transforms = np.array([[1, 0, dx, 0, 1, dy, 0, 0]], np.float32)
        result, gradient = gradient_of(lambda x: transform(x, transforms, fill_mode="constant",
                                                           interpolation=interpolation), data)
        compare(probe, "projective_transform", [data, transforms], result,
                {"fill_mode": "constant", "fill_value": 0.0, "interpolation": interpolation}, gradient)


def test_ranges_of_dtypes(probe):
    rng = np.random.default_rng(7)
    integers = ["uint8", "int8", "int16", "int32"]
    for source, dtype, saturate in itertools.product(integers + ["float32", "float64"], integers + ["float32"],
                                                     [False, True]):
        if source in integers:
            info = np.iinfo(source)
            data = rng.integers(0 if not saturate else info.min, info.max, (3, 4, 3), endpoint=True).astype(source)
            data[0, 0] = [0, info.max, info.max // 2]
        else:
            data = rng.random((3, 4, 3)).astype(source) * (3 if saturate else 1) - (1 if saturate else 0)
            data[0, 0, :2] = [0, 0.999]
        expected = tf.image.convert_image_dtype(data, dtype, saturate).numpy()
        sent = data.astype(np.float64 if source == "float64" else np.float32 if source == "float32" else np.int64)
        compare(probe, "convert_image_dtype", [sent], expected,
                {"from": source, "dtype": dtype, "saturate": saturate}, rtol=1e-6)


def test_colors(probe):
    rng = np.random.default_rng(8)
    for shape, dtype in itertools.product([(6, 7, 3), (2, 5, 4, 3)], [np.float32, np.uint8]):
        data = images(rng, shape, dtype)
        if dtype == np.float32:
            data /= 255
        data = tf.constant(data)
        # Where a byte lies between two, the last digit of a sum decides.
        tolerance = {"rtol": 1e-5, "atol": 1e-5} if dtype == np.float32 else {"atol": 1}
        for op, by in [("adjust_brightness", 0.2), ("adjust_brightness", -0.4), ("adjust_contrast", 0.6),
                       ("adjust_contrast", 2.5), ("adjust_hue", 0.1), ("adjust_hue", -0.7), ("adjust_hue", 1.0),
                       ("adjust_saturation", 0.4), ("adjust_saturation", 3.0)]:
            compare(probe, op, [data], getattr(tf.image, op)(data, by), {"by": by}, **tolerance)
        for gamma, gain in [(0.5, 1.0), (2.2, 0.7), (0.0, 1.0)]:
            compare(probe, "adjust_gamma", [data], tf.image.adjust_gamma(data, gamma, gain),
                    {"by": gamma, "gain": gain}, **tolerance)
        compare(probe, "rgb_to_grayscale", [data], tf.image.rgb_to_grayscale(data), **tolerance)
        compare(probe, "grayscale_to_rgb", [data[..., :1]], tf.image.grayscale_to_rgb(data[..., :1]))
        compare(probe, "per_image_standardization", [data], tf.image.per_image_standardization(data), rtol=1e-4,
                atol=1e-5)
        if dtype == np.float32:
            hsv = tf.image.rgb_to_hsv(data)
            compare(probe, "rgb_to_hsv", [data], hsv, rtol=1e-6, atol=1e-7)
            compare(probe, "hsv_to_rgb", [hsv.numpy()], tf.image.hsv_to_rgb(hsv), rtol=1e-6, atol=1e-7)
    flat = np.full((3, 3, 3), 7, np.uint8)
    compare(probe, "per_image_standardization", [flat], tf.image.per_image_standardization(flat))


def test_stateless_random_operations_draw_the_same(probe):
    rng = np.random.default_rng(9)
    data = images(rng, (9, 8, 3), np.float32) / 255
    batch = images(rng, (16, 3, 3, 1), np.float32)
    for seed in [(1, 2), (0, 0), (-5, 77), (2**40 + 3, -2**35)]:
        for op, options, arguments in [
                ("stateless_random_brightness", {"most": 0.3}, (0.3,)), ("stateless_random_hue", {"most": 0.4}, (0.4,)),
                ("stateless_random_contrast", {"least": 0.5, "most": 1.5}, (0.5, 1.5)),
                ("stateless_random_saturation", {"least": 0.2, "most": 3.0}, (0.2, 3.0))]:
            compare(probe, op, [data], getattr(tf.image, op)(data, *arguments, seed=seed), {**options, "seed": seed},
                    rtol=1e-5, atol=1e-5)
        compare(probe, "stateless_random_crop", [data], tf.image.stateless_random_crop(data, (4, 3, 2), seed),
                {"size": (4, 3, 2), "seed": seed})
        for op in ["stateless_random_flip_left_right", "stateless_random_flip_up_down"]:
            compare(probe, op, [data], getattr(tf.image, op)(data, seed), {"seed": seed})
            compare(probe, op, [batch], getattr(tf.image, op)(batch, seed), {"seed": seed})


def smooth(rng, height, width, channels):
    """What a photograph is to a codec: edges, slopes and some noise."""
    y, x = np.mgrid[:height, :width]
    waves = [np.sin(x / rng.uniform(5, 40) + y / rng.uniform(5, 40) + rng.uniform(0, 6)) for _ in range(channels)]
    picture = np.stack(waves, -1) * 80 + 128 + rng.normal(0, 6, (height, width, channels))
    picture[height // 3:height // 2, width // 4:width // 2] += 60
    return np.clip(picture, 0, 255).astype(np.uint8)


def decoded(probe, op, contents, expected, options=None, atol=0.0):
    answer = probe("image", {"op": op, "contents": contents.hex(), "options": options or {}})
    assert "error" not in answer, answer
    expected = np.asarray(expected)
    assert answer["shape"] == list(expected.shape), (op, options)
    np.testing.assert_allclose(np.array(answer["values"]).reshape(answer["shape"]), expected, rtol=0, atol=atol,
                               err_msg=f"{op} {options}")


def jpegs(rng):
    for shape, options in [((37, 50, 3), {}), ((16, 16, 1), {}), ((50, 33, 3), {"progressive": True}),
                           ((41, 29, 3), {"chroma_downsampling": False, "quality": 60}),
                           ((24, 40, 1), {"progressive": True, "optimize_size": True})]:
        yield tf.io.encode_jpeg(smooth(rng, *shape), **options).numpy()


def test_decode_jpeg(probe):
    rng = np.random.default_rng(10)
    for contents in jpegs(rng):
        decoded(probe, "extract_jpeg_shape", contents, tf.io.extract_jpeg_shape(contents))
        for channels, ratio, fancy, method in itertools.product([0, 1, 3], [1, 2, 4, 8], [True, False],
                                                                ["INTEGER_ACCURATE", "INTEGER_FAST", ""]):
            options = {"channels": channels, "ratio": ratio, "fancy_upscaling": fancy, "dct_method": method}
            expected = tf.io.decode_jpeg(contents, **options)
            decoded(probe, "decode_jpeg", contents, expected, options)


def test_decode_and_crop_jpeg(probe):
    rng = np.random.default_rng(11)
    for contents in jpegs(rng):
        height, width, _ = tf.io.extract_jpeg_shape(contents).numpy()
        for _ in range(12):
            y, x = int(rng.integers(0, height)), int(rng.integers(0, width))
            window = [y, x, int(rng.integers(1, height - y + 1)), int(rng.integers(1, width - x + 1))]
            expected = tf.io.decode_and_crop_jpeg(contents, window, dct_method="INTEGER_ACCURATE")
            decoded(probe, "decode_and_crop_jpeg", contents, expected,
                    {"window": window, "dct_method": "INTEGER_ACCURATE"})


def test_jpegs_that_are_cut_short(probe):
    rng = np.random.default_rng(12)
    for contents in jpegs(rng):
        for share in [0.3, 0.6, 0.9, 0.99]:
            cut = contents[:int(len(contents) * share)]
            for options in [{}, {"try_recover_truncated": True},
                            {"try_recover_truncated": True, "acceptable_fraction": 0.5}]:
                try:
                    expected = tf.io.decode_jpeg(cut, dct_method="INTEGER_ACCURATE", **options)
                except tf.errors.InvalidArgumentError:
                    expected = None
                options = {**options, "dct_method": "INTEGER_ACCURATE"}
                if expected is None:
                    answer = probe("image", {"op": "decode_jpeg", "contents": cut.hex(), "options": options})
                    assert answer.get("error") == "INVALID_ARGUMENT", (share, options)
                else:
                    decoded(probe, "decode_jpeg", cut, expected, options)


def test_decode_png(probe):
    rng = np.random.default_rng(13)
    for channels, (dtype, most) in itertools.product([1, 2, 3, 4], [("uint8", 256), ("uint16", 65536)]):
        picture = rng.integers(0, most, (9, 14, channels)).astype(dtype)
        contents = tf.io.encode_png(picture).numpy()
        for wanted, wanted_dtype in itertools.product([0, 1, 2, 3, 4], ["uint8", "uint16"]):
            if wanted == 2:
                continue  # TensorFlow refuses it
            expected = tf.io.decode_png(contents, wanted, wanted_dtype)
            decoded(probe, "decode_png", contents, expected,
                    {"channels": wanted, "dtype": "int32" if wanted_dtype == "uint16" else "uint8"})
        for wanted_dtype in ["uint8", "uint16", "float32"]:
            decoded(probe, "decode_image", contents, tf.io.decode_image(contents, dtype=wanted_dtype),
                    {"dtype": "int32" if wanted_dtype == "uint16" else wanted_dtype}, atol=1e-6)


def test_decode_image(probe):
    rng = np.random.default_rng(14)
    for contents in jpegs(rng):
        for channels, dtype in itertools.product([0, 1, 3], ["uint8", "uint16", "float32"]):
            expected = tf.io.decode_image(contents, channels, dtype).numpy()
            decoded(probe, "decode_image", contents, expected,
                    {"channels": channels, "dtype": "int32" if dtype == "uint16" else dtype}, atol=1e-6)
        assert probe("image", {"op": "is_jpeg", "contents": contents.hex()})["value"]


def test_encoded_files_are_read_by_tensorflow(probe):
    rng = np.random.default_rng(15)
    for shape in [(20, 31, 1), (33, 18, 3)]:
        picture = smooth(rng, *shape)
        for options in [{}, {"quality": 40}, {"progressive": True}, {"optimize_size": True, "quality": 80},
                        {"chroma_downsampling": False}, {"density_unit": "cm", "x_density": 77, "y_density": 20},
                        {"xmp_metadata": "<x/>"}]:
            answer = probe("image", {"op": "encode_jpeg", "inputs": [as_json(picture)], "options": options})
            assert bytes.fromhex(answer["contents"]) == tf.io.encode_jpeg(picture, **options).numpy(), options
    for channels, dtype in itertools.product([1, 2, 3, 4], ["uint8", "int32"]):
        picture = rng.integers(0, 65536 if dtype == "int32" else 256, (7, 9, channels)).astype(dtype)
        answer = probe("image", {"op": "encode_png", "inputs": [as_json(picture)], "options": {"compression": 9}})
        wide = "uint16" if dtype == "int32" else "uint8"
        np.testing.assert_array_equal(tf.io.decode_png(bytes.fromhex(answer["contents"]), dtype=wide), picture)
    picture = smooth(rng, 20, 20, 3)
    expected = tf.image.adjust_jpeg_quality(picture, 30)
    compare(probe, "adjust_jpeg_quality", [picture], expected, {"by": 30})

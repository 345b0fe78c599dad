"""reduce and all_reduce give TensorFlow's values and dtypes, but where TensorFlow's sums wrap."""

import numpy as np
import pytest
import tensorflow as tf

from conftest import as_json, from_json

SMALL = ["uint8", "int8", "int16"]
DTYPES = [*SMALL, "int32", "int64", "float32", "float64"]


@pytest.fixture(scope="module")
def strategy():
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def ours(probe, op, dtype, values, axis=None, in_step=False):
    answer = probe("reduce", {"op": op, "dtype": dtype, "axis": axis, "in_step": in_step,
                              "values": [as_json(np.array(value)) for value in values]})
    return answer.get("error") or from_json(answer)


def per_replica(strategy, dtype, values):
    return strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant(values[context.replica_id_in_sync_group], dtype))


@pytest.mark.parametrize("axis", [None, 0])
@pytest.mark.parametrize("op", ["SUM", "MEAN"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_reduce(probe, strategy, dtype, op, axis):
    values = [[0, 1, 2], [3, 4, 5]]  # the docstring's: their mean is 2.5
    theirs = strategy.reduce(op, per_replica(strategy, dtype, values), axis=axis).numpy()
    result = ours(probe, op, dtype, values, axis)
    np.testing.assert_array_equal(result, theirs)
    assert result.dtype == theirs.dtype


@pytest.mark.parametrize("dtype, large", [("uint8", 200), ("int8", 100), ("int16", 30000)])
def test_where_a_sum_wraps_cohort_says_so(probe, strategy, dtype, large):
    theirs = strategy.reduce("SUM", per_replica(strategy, dtype, [large, large]), axis=None)
    assert int(theirs) != 2 * large
    assert ours(probe, "SUM", dtype, [large, large]) == "INVALID_ARGUMENT"
    assert ours(probe, "MEAN", dtype, [large, large]) == large


@pytest.mark.parametrize("op", ["SUM", "MEAN"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_all_reduce_in_a_step(probe, strategy, dtype, op):
    values = [5, 8]

    @tf.function
    def reduced():
        def step():
            context = tf.distribute.get_replica_context()
            mine = tf.gather(tf.constant(values, dtype), context.replica_id_in_sync_group)
            return context.all_reduce(op, mine)
        return strategy.run(step)

    result = ours(probe, op, dtype, values, in_step=True)
    if dtype in ("uint8", "int8", "int16"):
        with pytest.raises(TypeError):
            reduced()
        assert result == "INVALID_ARGUMENT"
        return
    theirs = strategy.experimental_local_results(reduced())[0].numpy()
    np.testing.assert_array_equal(result, theirs)
    assert result.dtype == theirs.dtype


def test_negative_learning_rates_are_accepted():
    """So Cohort accepts them too, with a warning."""
    assert float(tf.keras.optimizers.SGD(-1.0).learning_rate) == -1.0

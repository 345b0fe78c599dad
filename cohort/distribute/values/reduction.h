// The rules of reductions for dtypes. They are TensorFlow's, but a sum of integers of up to 32 bits
// never wraps silently. Sums of int64 do.
#pragma once

#include "cohort/core/function_ref.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/distribute/values/values.h"

namespace cohort::internal {

// Errors: InvalidArgument (neither SUM nor MEAN: a number that was cast).
void check_reduce_op(distribute::ReduceOp op);
// Errors: that; InvalidArgument (bool: neither sum nor mean of truths is a truth).
void check_can_reduce(distribute::ReduceOp op, const Tensor& value);
// Errors: InvalidArgument (a dtype that TensorFlow's all_reduce does not take either: bool, and
// integers of less than 32 bits).
void check_can_all_reduce(const Tensor& value);

// sum / count. Integers are divided truly: `dtype`, that of the values, gives float64 for int32 and
// int64, else float32.
Tensor mean_of(const Tensor& sum, int64_t count, DType dtype);

using SumFunction = FunctionRef<Tensor(at::ArrayRef<Tensor>)>;

// sum_of(values), of integers in int64.
Tensor wide_sum(at::ArrayRef<Tensor> values, SumFunction sum_of);
// A sum of values of value's dtype, which was made in int64 if they are integers of up to 32 bits,
// in that dtype again. `what` sums, for messages: "reduce".
// Errors: InvalidArgument (the dtype cannot hold a sum: says which).
Tensor sum_that_fits(const Tensor& sum, const Tensor& value, const char* what);

}  // namespace cohort::internal

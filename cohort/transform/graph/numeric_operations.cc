// Operations on numbers, element by element, as libtorch computes them.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/add.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ceil.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/floor.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/le.h>
#include <ATen/ops/log.h>
#include <ATen/ops/log1p.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/logical_or.h>
#include <ATen/ops/lt.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/result_type.h>
#include <ATen/ops/round.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sign.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/true_divide.h>
#include <ATen/ops/where.h>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/keras/base/config_json.h"
#include "cohort/transform/graph/operations.h"

namespace cohort::internal {
namespace {

using keras::Config;
using Types = std::span<const ColumnType>;
using Values = std::span<const ColumnValue>;

ColumnValue like(Values inputs, Leaf values) {
  return {.values = std::move(values), .row_splits = common_row_splits(inputs)};
}

template <Tensor (*fn)(const Tensor&)>
EvaluateColumn unary(const Config&, Types inputs) {
  take_inputs(inputs, 1);
  take_numbers(inputs);
  return [](Values values) { return like(values, fn(values[0].values.tensor())); };
}

// What a statistic is beside the elements of a ragged column or rows: broadcast from the right.
template <Tensor (*fn)(const Tensor&, const Tensor&)>
EvaluateColumn binary(const Config&, Types inputs) {
  take_inputs(inputs, 2);
  take_numbers(inputs);
  take_matching(inputs);
  return [](Values values) {
    return like(values, fn(values[0].values.tensor(), values[1].values.tensor()));
  };
}

StringTensor broadcast_strings(const StringTensor& text, const std::vector<int64_t>& sizes) {
  if (text.sizes() == sizes) return text;
  if (text.numel() != 1) {
    throw InvalidArgumentError("columns of strings of different sizes are not compared");
  }
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return StringTensor(std::vector<std::string>(static_cast<size_t>(count), std::string(text[0])),
                      sizes);
}

Tensor equal_strings(const StringTensor& x, const StringTensor& y, bool expected) {
  const auto& sizes = x.numel() == 1 && x.dim() < y.dim() ? y.sizes() : x.sizes();
  const StringTensor a = broadcast_strings(x, sizes);
  const StringTensor b = broadcast_strings(y, sizes);
  Tensor result = at::empty(sizes, at::kBool);
  bool* out = result.data_ptr<bool>();
  for (int64_t i = 0; i < a.numel(); ++i) out[i] = (a.data()[i] == b.data()[i]) == expected;
  return result;
}

template <Tensor (*fn)(const Tensor&, const Tensor&), bool kEqual>
EvaluateColumn comparison(const Config& attributes, Types inputs) {
  take_inputs(inputs, 2);
  if (!inputs[0].is_string() && !inputs[1].is_string()) return binary<fn>(attributes, inputs);
  if (inputs[0].is_string() != inputs[1].is_string()) {
    throw InvalidArgumentError("strings and numbers are never equal; use transform::to_number");
  }
  take_matching(inputs);
  return [](Values values) {
    return like(values,
                equal_strings(values[0].values.strings(), values[1].values.strings(), kEqual));
  };
}

Tensor negative(const Tensor& x) { return at::neg(x); }
Tensor add(const Tensor& x, const Tensor& y) { return at::add(x, y); }
Tensor subtract(const Tensor& x, const Tensor& y) { return at::sub(x, y); }
Tensor eq(const Tensor& x, const Tensor& y) { return at::eq(x, y); }
Tensor ne(const Tensor& x, const Tensor& y) { return at::ne(x, y); }
Tensor lt(const Tensor& x, const Tensor& y) { return at::lt(x, y); }
Tensor le(const Tensor& x, const Tensor& y) { return at::le(x, y); }
Tensor gt(const Tensor& x, const Tensor& y) { return at::gt(x, y); }
Tensor ge(const Tensor& x, const Tensor& y) { return at::ge(x, y); }
Tensor power(const Tensor& x, const Tensor& y) { return at::pow(x, y); }
Tensor rounded(const Tensor& x) { return at::round(x); }

// A number is weak: it takes the dtype of the column beside it.
EvaluateColumn constant(const Config& attributes, Types inputs) {
  take_inputs(inputs, 0);
  const Json& value = member_of(json_of(attributes), "value", "constant");
  Leaf leaf = Leaf(Tensor());
  if (value.is_string()) {
    leaf = StringTensor::scalar(value.get<std::string>());
  } else {
    Tensor number = value.is_number_integer()
                        ? at::scalar_tensor(attributes.get_int("value"), at::kLong)
                        : at::scalar_tensor(attributes.get_double("value"), at::kDouble);
    number.unsafeGetTensorImpl()->set_wrapped_number(true);
    leaf = number;
  }
  return [leaf](Values) { return ColumnValue{.values = leaf}; };
}

EvaluateColumn constant_vector(const Config& attributes, Types inputs) {
  take_inputs(inputs, 0);
  const Json& value = member_of(json_of(attributes), "value", "constant_vector");
  std::vector<float> numbers;
  for (const Json& number : value) {
    if (!number.is_number()) throw InvalidArgumentError("its value is a list of numbers");
    numbers.push_back(number.get<float>());
  }
  const Leaf leaf = at::tensor(numbers);
  return [leaf](Values) { return ColumnValue{.values = leaf}; };
}

EvaluateColumn floor_mod(const Config& attributes, Types inputs) {
  take_inputs(inputs, 1);
  if (inputs[0].dtype != LeafType(at::kLong)) throw InvalidArgumentError("it takes int64");
  const int64_t divisor = attributes.get_int("divisor");
  if (divisor < 1) throw InvalidArgumentError("divisor is at least 1");
  return [divisor](Values values) {
    return like(values, at::remainder(values[0].values.tensor(), divisor));
  };
}

EvaluateColumn cast(const Config& attributes, Types inputs) {
  take_inputs(inputs, 1);
  take_numbers(inputs);
  const DType dtype = dtype_of_name(attributes.get_string("dtype"));
  return [dtype](Values values) { return like(values, values[0].values.tensor().to(dtype)); };
}

EvaluateColumn where(const Config&, Types inputs) {
  take_inputs(inputs, 3);
  take_numbers(inputs);
  take_matching(inputs);
  if (inputs[0].dtype != LeafType(at::kBool)) {
    throw InvalidArgumentError("its first column is the condition, of bool");
  }
  return [](Values values) {
    // Copies: numbers take their dtype from each other, which at::where itself does not know.
    const Tensor& x = values[1].values.tensor();
    const Tensor& y = values[2].values.tensor();
    const DType dtype = at::result_type(x, y);
    const auto taken = [dtype](const Tensor& value) {
      return value.to(dtype, /*non_blocking=*/false, /*copy=*/value.dim() == 0);
    };
    return like(values, at::where(values[0].values.tensor(), taken(x), taken(y)));
  };
}

// (x - mean) / sqrt(variance); where the variance is 0, x - mean.
EvaluateColumn z_score(const Config& attributes, Types inputs) {
  take_inputs(inputs, 3);
  take_numbers(inputs);
  take_matching(inputs);
  const DType dtype = dtype_of_name(attributes.get_string("dtype"));
  const DType computed = dtype == at::kHalf ? at::kFloat : dtype;  // CPUs have no roots of float16
  return [dtype, computed](Values values) {
    const Tensor shifted =
        values[0].values.tensor().to(computed) - values[1].values.tensor().to(computed);
    const Tensor deviation = at::sqrt(values[2].values.tensor().to(computed));
    return like(values, at::where(at::ne(deviation, 0), shifted / deviation, shifted).to(dtype));
  };
}

// Maps [min, max] to [output_min, output_max]; where min is not below max, by a sigmoid.
EvaluateColumn min_max_scale(const Config& attributes, Types inputs) {
  take_inputs(inputs, 3);
  take_numbers(inputs);
  take_matching(inputs);
  const double low = attributes.get_double("output_min");
  const double high = attributes.get_double("output_max");
  return [low, high](Values values) {
    const Tensor x = values[0].values.tensor().to(at::kFloat);
    const Tensor min = values[1].values.tensor().to(at::kFloat);
    const Tensor max = values[2].values.tensor().to(at::kFloat);
    const Tensor scaled = at::where(at::lt(min, max), (x - min) / (max - min), at::sigmoid(x));
    return like(values, scaled * (high - low) + low);
  };
}

EvaluateColumn one_hot(const Config& attributes, Types inputs) {
  take_inputs(inputs, 1);
  take_numbers(inputs);
  if (inputs[0].is_ragged()) throw InvalidArgumentError("it takes a dense column");
  if (!at::isIntegralType(inputs[0].dtype.dtype(), false))
    throw InvalidArgumentError("it takes integers");
  const int64_t depth = attributes.get_int("depth");
  if (depth < 1) throw InvalidArgumentError(str("depth is at least 1, but got ", depth));
  return [depth](Values values) {
    // An index outside has a row of zeros, as in TensorFlow.
    const Tensor index = values[0].values.tensor().to(at::kLong).unsqueeze(-1);
    return ColumnValue{.values = at::eq(index, at::arange(depth)).to(at::kFloat)};
  };
}

EvaluateColumn reshape(const Config& attributes, Types inputs) {
  take_inputs(inputs, 1);
  if (inputs[0].is_ragged()) {
    throw InvalidArgumentError("it takes a dense column; transform::to_dense makes one");
  }
  const std::vector<int64_t> shape = attributes.get_ints("shape");
  return [shape](Values values) {
    const Leaf& x = values[0].values;
    std::vector<int64_t> sizes = {x.sizes().front()};
    sizes.insert(sizes.end(), shape.begin(), shape.end());
    if (x.is_strings()) return ColumnValue{.values = x.strings().reshape(sizes)};
    return ColumnValue{.values = x.tensor().reshape(sizes)};
  };
}

// Along the last dimension; rows without one count as [rows, 1].
EvaluateColumn concat(const Config&, Types inputs) {
  if (inputs.empty()) throw InvalidArgumentError("it takes at least one column");
  take_numbers(inputs);
  for (const ColumnType& input : inputs) {
    if (input.is_ragged() || input.is_statistic() || input.shape.size() > 1) {
      throw InvalidArgumentError("it takes dense columns [rows] or [rows, size]");
    }
    if (input.dtype != inputs[0].dtype) {
      throw InvalidArgumentError("its columns have different dtypes; use transform::cast");
    }
  }
  return [](Values values) {
    std::vector<Tensor> parts;
    for (const ColumnValue& value : values) {
      const Tensor& x = value.values.tensor();
      parts.push_back(x.dim() == 1 ? x.unsqueeze(1) : x);
    }
    return ColumnValue{.values = at::cat(parts, 1)};
  };
}

constexpr NamedOperation kNumericOperations[] = {
    {"constant", constant},
    {"constant_vector", constant_vector},
    {"floor_mod", floor_mod},
    {"cast", cast},
    {"negative", unary<negative>},
    {"abs", unary<at::abs>},
    {"sqrt", unary<at::sqrt>},
    {"exp", unary<at::exp>},
    {"log", unary<at::log>},
    {"log1p", unary<at::log1p>},
    {"floor", unary<at::floor>},
    {"ceil", unary<at::ceil>},
    {"round", unary<rounded>},
    {"sign", unary<at::sign>},
    {"tanh", unary<at::tanh>},
    {"sigmoid", unary<at::sigmoid>},
    {"logical_not", unary<at::logical_not>},
    {"is_nan", unary<at::isnan>},
    {"is_finite", unary<at::isfinite>},
    {"add", binary<add>},
    {"subtract", binary<subtract>},
    {"multiply", binary<at::mul>},
    {"divide", binary<at::true_divide>},
    {"pow", binary<power>},
    {"minimum", binary<at::minimum>},
    {"maximum", binary<at::maximum>},
    {"logical_and", binary<at::logical_and>},
    {"logical_or", binary<at::logical_or>},
    {"equal", comparison<eq, true>},
    {"not_equal", comparison<ne, false>},
    {"less", binary<lt>},
    {"less_equal", binary<le>},
    {"greater", binary<gt>},
    {"greater_equal", binary<ge>},
    {"where", where},
    {"z_score", z_score},
    {"min_max_scale", min_max_scale},
    {"one_hot", one_hot},
    {"reshape", reshape},
    {"concat", concat},
};

}  // namespace

std::span<const NamedOperation> numeric_operations() { return kNumericOperations; }

}  // namespace cohort::internal

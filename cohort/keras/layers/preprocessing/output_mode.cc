#include "cohort/keras/layers/preprocessing/output_mode.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/structure/composite.h"
#include "cohort/core/structure/ragged_tensor.h"
#include "cohort/core/text.h"
#include "cohort/keras/base/backend.h"

namespace cohort::internal {
namespace {

constexpr std::array<std::pair<const char*, OutputMode>, 7> kModes = {{
    {"int", OutputMode::kInt},
    {"one_hot", OutputMode::kOneHot},
    {"multi_hot", OutputMode::kMultiHot},
    {"count", OutputMode::kCount},
    {"tf_idf", OutputMode::kTfIdf},
    {"binary", OutputMode::kMultiHot},
    {"tf-idf", OutputMode::kTfIdf},
}};
constexpr std::array kAllModes = {OutputMode::kInt, OutputMode::kOneHot, OutputMode::kMultiHot,
                                  OutputMode::kCount, OutputMode::kTfIdf};

// Vectors, and the indices of which each is made: those of row r are [begin(r), begin(r + 1)).
struct Layout {
  int64_t rows = 1;
  int64_t per_row = 1;                  // indices that share a vector
  bool one_vector = false;              // the output has no dimension for the rows
  const int64_t* row_splits = nullptr;  // rows of unlike lengths

  int64_t begin(int64_t row) const {
    return row_splits == nullptr ? row * per_row : row_splits[row];
  }
};

Layout layout_of(const Tensor& indices, OutputMode mode, const std::string& layer) {
  const int64_t rank = indices.dim();
  if (rank == 0) return {1, 1, true};
  if (mode == OutputMode::kOneHot) {
    if (rank == 1) return {indices.size(0), 1, false};
    if (rank == 2 && indices.size(1) == 1) return {indices.size(0), 1, false};
  } else {
    if (rank == 1) return {1, indices.size(0), true};
    if (rank == 2) return {indices.size(0), indices.size(1), false};
  }
  throw InvalidArgumentError(str(
      layer, ": outputs other than 'int' have two dimensions at most, but the input is ",
      shape_str(indices.sizes()),
      mode == OutputMode::kOneHot ? "; one_hot takes [n] or [n, 1] (multi_hot takes [n, m])" : ""));
}

bool is_counting(OutputMode mode) {
  return mode == OutputMode::kCount || mode == OutputMode::kTfIdf;
}

// [rows, depth] on the host, summed in Sum.
template <class Sum>
Tensor add_up(const Tensor& indices, const Layout& layout, const Encoding& encoding,
              const Tensor& weights, DType sum_dtype) {
  const int64_t depth = encoding.depth;
  Tensor out = at::zeros({layout.rows, depth}, sum_dtype);
  auto* row = out.data_ptr<Sum>();
  const auto* index = indices.data_ptr<int64_t>();
  const Tensor given = weights.defined() ? weights.to(sum_dtype).contiguous() : weights;
  const Sum* const weight = given.defined() ? given.data_ptr<Sum>() : nullptr;
  const bool counts = is_counting(encoding.mode);
  for (int64_t r = 0; r < layout.rows; ++r, row += depth) {
    for (int64_t i = layout.begin(r); i < layout.begin(r + 1); ++i) {
      if (index[i] < 0 || index[i] >= depth) continue;
      Sum& sum = row[index[i]];
      sum = counts ? sum + (weight == nullptr ? Sum{1} : weight[i]) : Sum{1};
    }
  }
  return out;
}

// The same where the host cannot read: no copy, no wait.
Tensor add_up_on_device(const Tensor& indices, const Layout& layout, const Encoding& encoding,
                        const Tensor& weights, DType sum_dtype) {
  const Tensor inside = (indices >= 0).logical_and_(indices < encoding.depth);
  Tensor shares = inside.to(sum_dtype);
  if (weights.defined()) shares = shares * weights.to(sum_dtype);
  Tensor out = at::zeros({layout.rows, encoding.depth}, shares.options());
  const std::array<int64_t, 2> rows = {layout.rows, layout.per_row};
  out.scatter_add_(1, indices.clamp(0, encoding.depth - 1).reshape(rows), shares.reshape(rows));
  return is_counting(encoding.mode) ? out : out.clamp_max_(1);
}

Tensor encode(const Tensor& indices, const Layout& layout, const Encoding& encoding,
              const Tensor& weights) {
  // float32 holds counts up to 2^24; weights of outputs that are integers may be larger.
  const bool is_wide =
      encoding.dtype == float64 || (weights.defined() && at::isIntegralType(encoding.dtype, false));
  const DType sum_dtype = is_wide ? float64 : float32;
  const Tensor given = weights.defined() ? weights.to(indices.device(), encoding.dtype) : weights;
  const auto sum = !indices.is_cpu() ? add_up_on_device : is_wide ? add_up<double> : add_up<float>;
  Tensor out = sum(indices, layout, encoding, given, sum_dtype);
  out = out.to(encoding.dtype);
  if (encoding.mode == OutputMode::kTfIdf) out = out * encoding.idf_weights.to(out.options());
  return layout.one_vector ? out.select(0, 0) : out;
}

Structure encode_ragged(const RaggedTensor& ragged, const Encoding& encoding,
                        const std::string& layer, FunctionRef<Tensor(const Leaf& leaf)> index_of,
                        const Tensor& weights) {
  const Leaf& values = ragged.flat_values();
  const Tensor indices = index_of(values);
  if (encoding.mode == OutputMode::kInt) {
    return ragged.with_values(indices.to(encoding.dtype).to(ragged.row_splits().device()));
  }
  if (encoding.mode == OutputMode::kOneHot || values.dim() != 1) {
    throw InvalidArgumentError(str(layer, ": ", quoted(output_mode_name(encoding.mode)),
                                   " of a RaggedTensor with values of ", shape_str(values.sizes()),
                                   " would have more than two dimensions; 'multi_hot' and 'count' ",
                                   "make a vector of each row of values [n]"));
  }
  singly_ragged(ragged, str(layer, ": ", quoted(output_mode_name(encoding.mode))));
  const Tensor splits = ragged.row_splits().to(at::kCPU).contiguous();
  RaggedTensor::from_row_splits(values, splits);  // refuses splits that lead elsewhere
  const Layout layout{ragged.nrows(), 1, false, splits.data_ptr<int64_t>()};
  return encode(indices.to(at::kCPU), layout, encoding, weights).to(ragged.row_splits().device());
}

}  // namespace

OutputMode output_mode_of(const std::string& name, const std::string& layer,
                          std::span<const OutputMode> allowed) {
  if (allowed.empty()) allowed = kAllModes;
  for (const auto& [known, mode] : kModes) {
    if (name == known && std::find(allowed.begin(), allowed.end(), mode) != allowed.end()) {
      return mode;
    }
  }
  std::string names;
  for (size_t i = 0; i < allowed.size(); ++i) {
    const char* const before = i == 0 ? "" : i + 1 == allowed.size() ? " and " : ", ";
    names += str(before, quoted(output_mode_name(allowed[i])));
  }
  throw InvalidArgumentError(
      str(layer, ": output_mode is ", quoted(name), "; it is one of ", names));
}

std::string output_mode_name(OutputMode mode) {
  for (const auto& [known, candidate] : kModes) {
    if (candidate == mode) return std::string(known);
  }
  throw InternalError("an output mode without a name");
}

DType output_dtype_of(OutputMode mode, std::optional<DType> given, const std::string& layer) {
  const DType dtype = given.value_or(mode == OutputMode::kInt ? int64 : keras_floatx());
  const bool is_integer = at::isIntegralType(dtype, /*includeBool=*/false);
  if (mode == OutputMode::kInt && !is_integer) {
    throw InvalidArgumentError(str(layer, ": with output_mode 'int' the dtype is int64 or another ",
                                   "integer, not ", dtype_name(dtype)));
  }
  if (!is_integer && !at::isFloatingType(dtype)) {
    throw InvalidArgumentError(str(layer, ": with output_mode ", quoted(output_mode_name(mode)),
                                   " the dtype is a floating one, not ", dtype_name(dtype)));
  }
  return dtype;
}

Tensor encode(const Tensor& indices, const Encoding& encoding, const std::string& layer,
              const Tensor& weights) {
  return encode(indices, layout_of(indices, encoding.mode, layer), encoding, weights);
}

Structure encode_inputs(const Structure& inputs, const Encoding& encoding, const std::string& layer,
                        FunctionRef<Tensor(const Leaf& leaf)> index_of, const Tensor& weights) {
  if (composite_kind(inputs) == Composite::kRagged) {
    return encode_ragged(inputs, encoding, layer, index_of, weights);
  }
  if (!inputs.is_leaf()) {
    throw InvalidArgumentError(str(layer, " takes one leaf, but got ", inputs));
  }
  const Leaf& input = inputs.leaf();
  const Tensor indices = index_of(input);
  const c10::Device device = input.is_tensor() ? input.tensor().device() : c10::Device(c10::kCPU);
  if (encoding.mode == OutputMode::kInt) return indices.to(encoding.dtype).to(device);
  return encode(indices, encoding, layer, weights).to(device);
}

}  // namespace cohort::internal

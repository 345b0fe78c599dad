#include "cohort/keras/layers/lookup/categorical_encoding.h"

#include <ATen/ops/zeros.h>

#include <array>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/text.h"

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

struct Layout {
  int64_t rows = 1;
  int64_t per_row = 1;      // indices that share a vector
  bool one_vector = false;  // the output has no dimension for the rows
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

}  // namespace

OutputMode output_mode_of(const std::string& name, const std::string& layer) {
  for (const auto& [known, mode] : kModes) {
    if (name == known) return mode;
  }
  throw InvalidArgumentError(
      str(layer, ": output_mode is ", quoted(name),
          "; it is one of 'int', 'one_hot', 'multi_hot', 'count' and 'tf_idf'"));
}

std::string output_mode_name(OutputMode mode) {
  for (const auto& [known, candidate] : kModes) {
    if (candidate == mode) return std::string(known);
  }
  throw InternalError("an output mode without a name");
}

Tensor encode(const Tensor& indices, const Encoding& encoding, const std::string& layer) {
  const Layout layout = layout_of(indices, encoding.mode, layer);
  const int64_t depth = encoding.depth;
  const bool counts = encoding.mode == OutputMode::kCount || encoding.mode == OutputMode::kTfIdf;
  Tensor out = at::zeros({layout.rows, depth}, float32);
  auto* row = out.data_ptr<float>();
  const auto* index = indices.data_ptr<int64_t>();
  for (int64_t r = 0; r < layout.rows; ++r, row += depth) {
    for (int64_t i = 0; i < layout.per_row; ++i, ++index) {
      if (*index < 0 || *index >= depth) continue;
      row[*index] = counts ? row[*index] + 1 : 1;
    }
  }
  out = out.to(encoding.dtype);
  if (encoding.mode == OutputMode::kTfIdf) out = out * encoding.idf_weights.to(encoding.dtype);
  return layout.one_vector ? out.select(0, 0) : out;
}

}  // namespace cohort::internal

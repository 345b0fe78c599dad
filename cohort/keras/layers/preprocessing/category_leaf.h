// What layers of categories read: integers, and the options that all of them have. For sources
// only: it includes nlohmann-json.
#pragma once

#include <string>

#include "cohort/core/structure/structure.h"
#include "cohort/keras/base/describe_leaves.h"
#include "cohort/keras/layers/base/layer_config.h"

namespace cohort::internal {

// Contiguous int64 on the host. Errors: InvalidArgument (no integers; `where` begins the message).
inline Tensor host_integers(const Leaf& leaf, const std::string& where) {
  if (!leaf.is_tensor() || !at::isIntegralType(leaf.tensor().scalar_type(), false)) {
    throw InvalidArgumentError(
        str(where, " takes strings or integers, but got ", describe_leaves(Structure(leaf))));
  }
  return leaf.tensor().detach().to(at::kCPU, at::kLong).contiguous();
}

// Keras passes over a floating dtype of indices, which its older files have.
template <class Options>
void read_category_options(FieldReader& field, Options& options) {
  field.common(options);
  field("output_mode", options.output_mode);
  field.always("sparse", false);
  const bool has_indices = options.output_mode == "int";
  if (has_indices && options.dtype && at::isFloatingType(*options.dtype)) options.dtype.reset();
}

}  // namespace cohort::internal

// Names in safetensors files: the dtypes, and the one name that no tensor may have.
#pragma once

#include <string_view>

#include "cohort/train/bundle/bundle_entry.h"

namespace cohort::internal {

inline constexpr const char* kSafetensorsMetadataKey = "__metadata__";

// Whether the format has a name for the type: all but strings and complex128.
bool safetensors_can_hold(BundleType type);

// "F32". Errors: InvalidArgument (the format has no name for it; `tensor` is named).
const char* safetensors_dtype(BundleType type, std::string_view tensor);

// Errors: DataLoss (no name of the format), Unimplemented (one that Cohort has no type for). Both
// begin with `what`.
BundleType parse_safetensors_dtype(std::string_view name, std::string_view what);

}  // namespace cohort::internal

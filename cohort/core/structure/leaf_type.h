// The type of a leaf that may hold strings: a dtype of numbers, or cohort::string.
//
//   namespace tf = cohort;
//   tf::keras::Input({3}, {.dtype = tf::string});
#pragma once

#include <string>

#include "cohort/core/error.h"
#include "cohort/core/structure/tensor.h"

namespace cohort {

struct StringType {
  bool operator==(const StringType&) const = default;
};
// Used in place of a dtype, for strings.
inline constexpr StringType string;

// Thread safety: immutable.
class LeafType {
 public:
  LeafType(DType dtype) : dtype_(dtype) {}
  LeafType(StringType) : is_string_(true) {}

  bool is_string() const { return is_string_; }
  // Errors: InvalidArgument (strings).
  DType dtype() const {
    if (is_string_) throw InvalidArgumentError("strings have no dtype of numbers");
    return dtype_;
  }
  // "string", "int64".
  std::string name() const { return is_string_ ? "string" : internal::dtype_name(dtype_); }

  bool operator==(const LeafType& other) const = default;

 private:
  DType dtype_ = DType::Undefined;
  bool is_string_ = false;
};

}  // namespace cohort

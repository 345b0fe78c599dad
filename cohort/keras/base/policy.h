// Mixed precision: layers that compute in 16 bits and keep their variables in float32.
//
//   keras::mixed_precision::set_global_policy("mixed_bfloat16");  // of layers made from now on
//   keras::layers::Dense(10, {.dtype = "float32"});               // but for this one
//
// See docs/mixed_precision.md.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cohort/core/export.h"
#include "cohort/core/structure/tensor.h"

namespace cohort {
namespace keras::mixed_precision {

// The dtype in which a layer computes and that of its variables. A value.
class COHORT_API Policy {
 public:
  // "mixed_bfloat16" and "mixed_float16" (variables are float32), or the name of a dtype.
  // Errors: InvalidArgument (another name; with the nearest, and all).
  Policy(std::string_view name);
  Policy(const char* name) : Policy(std::string_view(name)) {}
  Policy(const std::string& name) : Policy(std::string_view(name)) {}
  // This dtype for both.
  Policy(DType dtype) : compute_dtype_(dtype), variable_dtype_(dtype) {}

  DType compute_dtype() const { return compute_dtype_; }
  DType variable_dtype() const { return variable_dtype_; }
  bool is_mixed() const { return compute_dtype_ != variable_dtype_; }
  // "mixed_bfloat16", "float32".
  std::string name() const;
  bool operator==(const Policy& other) const = default;

 private:
  DType compute_dtype_;
  DType variable_dtype_;
};

// The policy of layers that are made without one; at start-up that of backend::floatx().
// Thread safety (of both): any thread.
COHORT_API Policy global_policy();
// nullopt: that of backend::floatx() again.
// Errors: InvalidArgument (a policy whose dtypes are not floating).
COHORT_API void set_global_policy(const std::optional<Policy>& policy);

}  // namespace keras::mixed_precision

namespace internal {
// float16 and bfloat16 as float32, in which losses and metrics are computed; others as they are.
Tensor widened(const Tensor& x);
// nullopt: no policy has this name.
std::optional<keras::mixed_precision::Policy> find_policy(std::string_view name);
}  // namespace internal
}  // namespace cohort

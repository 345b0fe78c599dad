#include "cohort/parameter_server/store/shard_form.h"

#include "cohort/core/error.h"

namespace cohort::internal {

std::string form_of(const Tensor& tensor) {
  return internal::str(dtype_name(tensor.scalar_type()), ' ', tensor.sizes());
}

void check_same_form(const std::string& name, const char* what, const Tensor& given,
                     const Tensor& value) {
  if (given.sizes() == value.sizes() && given.scalar_type() == value.scalar_type()) return;
  throw InvalidArgumentError(str(what, " of '", name, "' is ", form_of(given),
                                 ", but the variable's shard is ", form_of(value)));
}

}  // namespace cohort::internal

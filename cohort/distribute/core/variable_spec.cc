#include "cohort/distribute/core/variable_spec.h"

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::distribute {

namespace {

[[noreturn]] void refuse_part(const ShardInfo& part, const Tensor& whole) {
  throw InvalidArgumentError(internal::str(
      "the part of shape ", internal::shape_str(part.shape), " that begins at ",
      internal::shape_str(part.offset), " lies outside of the tensor, which is ",
      internal::describe(whole), "; is it the initial value of a variable of another shape?"));
}

}  // namespace

ShardInfo ShardInfo::whole(std::vector<int64_t> shape) {
  std::vector<int64_t> offset(shape.size(), 0);
  return {std::move(shape), std::move(offset)};
}

Tensor ShardInfo::of(const Tensor& whole) const {
  if (whole.dim() != static_cast<int64_t>(shape.size())) refuse_part(*this, whole);
  Tensor part = whole;
  for (size_t d = 0; d < shape.size(); ++d) {
    const auto dimension = static_cast<int64_t>(d);
    if (part.size(dimension) == shape[d]) continue;
    if (part.size(dimension) < offset[d] + shape[d]) refuse_part(*this, whole);
    part = part.narrow(dimension, offset[d], shape[d]);
  }
  return part;
}

Tensor VariableCreation::initial_value() const {
  return initializer(shape ? ShardInfo::whole(*shape) : ShardInfo());
}

void VariableCreation::set_initial_value(const Tensor& value) {
  if (!value.defined()) {
    throw InvalidArgumentError(internal::str("set_initial_value of variable ",
                                             internal::quoted(options.name),
                                             " got an undefined tensor"));
  }
  const Tensor cast = options.dtype ? value.to(*options.dtype) : value;
  shape = cast.sizes().vec();
  initializer = [cast](const ShardInfo& shard) { return shard.of(cast); };
}

}  // namespace cohort::distribute

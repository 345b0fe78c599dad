#include "cohort/keras/utils.h"

#include <ATen/Context.h>
#include <ATen/ops/zeros.h>

#include "cohort/core/error.h"
#include "cohort/core/libtorch_error.h"
#include "cohort/core/text.h"
#include "cohort/ops/random.h"

namespace cohort::keras::utils {
namespace {

using internal::str;

[[noreturn]] void fail(const Tensor& classes, const std::string& why) {
  throw InvalidArgumentError(str("to_categorical of ", internal::describe(classes), ": ", why));
}

}  // namespace

void set_random_seed(uint64_t seed) {
  random::set_seed(seed);
  at::manual_seed(seed);
}

Tensor to_categorical(const Tensor& classes, std::optional<int64_t> num_classes) {
  if (!classes.defined()) throw InvalidArgumentError("to_categorical of an undefined tensor");
  Tensor ids = classes.detach();
  if (ids.is_floating_point() && !ids.trunc().eq(ids).all().item<bool>()) {
    fail(classes, "there are fractions, which are no classes");
  }
  ids = ids.to(int64);
  if (ids.dim() > 1 && ids.size(-1) == 1) ids = ids.squeeze(-1);
  if (num_classes && *num_classes < 1) {
    fail(classes, str("num_classes is ", *num_classes, ", below 1"));
  }
  if (!num_classes && ids.numel() == 0) fail(classes, "without classes num_classes must be given");
  const int64_t count = num_classes ? *num_classes : ids.max().item<int64_t>() + 1;
  const Tensor flat = ids.reshape({-1});
  const Tensor outside = flat.lt(0).logical_or_(flat.ge(count)).nonzero();
  if (outside.size(0) > 0) {
    const int64_t place = outside[0].item<int64_t>();
    fail(classes, str("element ", place, ", in row-major order, is the class ",
                      flat[place].item<int64_t>(), ", outside of [0, ", count, ")"));
  }
  std::vector<int64_t> shape = ids.sizes().vec();
  shape.push_back(count);
  return internal::with_typed_errors("to_categorical", [&] {
    return at::zeros(shape, ids.options().dtype(float32)).scatter_(-1, ids.unsqueeze(-1), 1);
  });
}

}  // namespace cohort::keras::utils

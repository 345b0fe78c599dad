#include "cohort/keras/losses/label_watch.h"

#include <ATen/ops/aminmax.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/stack.h>

#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/structure/host_buffer.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

// The least and the largest label that a device has written last.
struct Watch {
  Tensor bounds;  // int64 [2], of the host
  c10::Device of{c10::kCPU};
  int64_t classes = 0;
};

thread_local Watch watch;

void check_written() {
  if (!watch.bounds.defined()) return;
  const auto* bounds = watch.bounds.data_ptr<int64_t>();
  const bool is_low = bounds[0] < 0;
  const int64_t label = is_low ? bounds[0] : bounds[1];
  if (!is_low && label < watch.classes) return;
  const int64_t classes = watch.classes;
  watch = {};
  throw InvalidArgumentError(str("label ", label, " of an earlier step is outside [0, ", classes,
                                 "): the predictions have ", classes,
                                 " classes; the losses of that step were NaN for such labels"));
}

}  // namespace

Tensor watched_labels(const Tensor& labels, int64_t classes, Tensor& valid) {
  check_written();
  if (!watch.bounds.defined() || watch.of != labels.device()) {
    watch = {.bounds = host_buffer({2}, int64, labels.device()).zero_(), .of = labels.device()};
  }
  watch.classes = classes;
  if (labels.numel() > 0) {
    const auto [least, largest] = at::aminmax(labels);
    watch.bounds.copy_(at::stack({least, largest}), /*non_blocking=*/true);
  }
  valid = at::logical_and(labels.ge(0), labels.lt(classes));
  return labels.clamp(0, classes - 1);
}

}  // namespace cohort::internal

#include "cohort/keras/losses/label_watch.h"

#include <ATen/ops/aminmax.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/stack.h>

#include <memory>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/recording/step_recording.h"
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

// Errors: InvalidArgument. It is thrown once.
void check_written(Tensor& written, int64_t classes) {
  if (!written.defined()) return;
  auto* const bounds = written.data_ptr<int64_t>();
  const bool is_low = bounds[0] < 0;
  const int64_t label = is_low ? bounds[0] : bounds[1];
  if (!is_low && label < classes) return;
  bounds[0] = bounds[1] = 0;
  throw InvalidArgumentError(str("label ", label, " of an earlier step is outside [0, ", classes,
                                 "): the predictions have ", classes,
                                 " classes; the losses of that step were NaN for such labels"));
}

void write_bounds(const Tensor& labels, const Tensor& bounds) {
  const auto [least, largest] = at::aminmax(labels);
  bounds.copy_(at::stack({least, largest}), /*non_blocking=*/true);
}

void watch_labels(const Tensor& labels, int64_t classes) {
  check_written(watch.bounds, watch.classes);
  if (!watch.bounds.defined() || watch.of != labels.device()) {
    watch = {.bounds = host_buffer({2}, int64, labels.device()).zero_(), .of = labels.device()};
  }
  watch.classes = classes;
  if (labels.numel() > 0) write_bounds(labels, watch.bounds);
}

// A recorded step writes to memory of its own, and looks at it before each replay.
void watch_recorded(StepRecording& recording, const Tensor& labels, int64_t classes) {
  if (recording.is_rehearsal()) {
    return recording.copy_to_host(nullptr, [&] { watch_labels(labels, classes); });
  }
  if (labels.numel() == 0) return;
  const auto bounds = std::make_shared<Tensor>(host_buffer({2}, int64, labels.device()).zero_());
  recording.each_time([bounds, classes] {
    check_written(watch.bounds, watch.classes);  // of steps before the recording
    check_written(*bounds, classes);
  });
  recording.copy_to_host(bounds, [&] { write_bounds(labels, *bounds); });
}

}  // namespace

Tensor watched_labels(const Tensor& labels, int64_t classes, Tensor& valid) {
  StepRecording* const recording = StepRecording::current();
  if (recording == nullptr) {
    watch_labels(labels, classes);
  } else {
    watch_recorded(*recording, labels, classes);
  }
  valid = at::logical_and(labels.ge(0), labels.lt(classes));
  return labels.clamp(0, classes - 1);
}

}  // namespace cohort::internal

#include "cohort/core/recording/host_constant.h"

#include <mutex>
#include <utility>
#include <vector>

#include "cohort/core/recording/step_recording.h"
#include "cohort/core/structure/host_buffer.h"

namespace cohort::internal {

struct HostConstant::Copies {
  std::mutex mutex;
  std::vector<Tensor> all;  // one a device
};

HostConstant::HostConstant(Tensor host)
    : host_(std::move(host)), copies_(std::make_shared<Copies>()) {}

Tensor HostConstant::on(c10::Device device) const {
  if (!host_.defined() || device.is_cpu()) return host_;
  const std::lock_guard lock(copies_->mutex);
  for (const Tensor& copy : copies_->all) {
    if (copy.device() == device) return copy;
  }
  // No step of its own has made the copy, and one that is recorded copies nothing.
  if (StepRecording* const recording = StepRecording::current()) return recording->constant(host_);
  copies_->all.push_back(copied_to(host_, device));
  return copies_->all.back();
}

}  // namespace cohort::internal

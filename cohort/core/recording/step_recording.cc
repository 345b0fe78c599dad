#include "cohort/core/recording/step_recording.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "cohort/core/structure/host_buffer.h"

namespace cohort::internal {
namespace {

thread_local StepRecording* current_recording = nullptr;

// Each tensor begins where kernels read several elements at once.
constexpr int64_t kAlignment = 16;  // elements

int64_t elements_of(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

}  // namespace

HostPart::HostPart(c10::Device device, const std::vector<Values>& all) : device_(device) {
  for (const Values& values : all) {
    auto block = std::find_if(blocks_.begin(), blocks_.end(),
                              [&](const Block& one) { return one.dtype == values.dtype; });
    if (block == blocks_.end())
      block = blocks_.insert(block, Block{values.dtype, 0, Tensor(), Tensor()});
    places_.push_back({values, static_cast<size_t>(block - blocks_.begin()), block->size, {}});
    const int64_t elements = elements_of(values.shape);
    block->size += (elements + kAlignment - 1) / kAlignment * kAlignment;
  }
  for (Block& block : blocks_) {
    block.on_device = at::zeros({block.size}, at::dtype(block.dtype).device(device));
  }
  for (Place& place : places_) {
    // Autograd counts what is written to each for itself.
    place.on_device = blocks_[place.block]
                          .on_device.narrow(0, place.offset, elements_of(place.form.shape))
                          .view(place.form.shape)
                          .variable_data();
  }
}

bool HostPart::has(size_t i, const Values& values) const {
  return i < places_.size() && places_[i].form == values;
}

void HostPart::add(size_t i, Fill fill) {
  actions_.push_back([this, i, fill = std::move(fill)] {
    const Place& place = places_[i];
    fill(blocks_[place.block]
             .on_host.narrow(0, place.offset, elements_of(place.form.shape))
             .view(place.form.shape));
  });
}

void HostPart::run() {
  // Fresh memory in each step, for the device may not have read the last step's yet; libtorch keeps
  // page-locked memory until the device has.
  for (Block& block : blocks_) block.on_host = host_buffer({block.size}, block.dtype, device_);
  for (const std::function<void()>& action : actions_) action();
  for (Block& block : blocks_) {
    block.on_device.copy_(block.on_host, /*non_blocking=*/true);
    block.on_host.reset();
  }
}

StepRecording::StepRecording(c10::Device device, OperationTrace& trace)
    : device_(device),
      trace_(trace),
      part_(nullptr),
      outer_(std::exchange(current_recording, this)) {}

StepRecording::StepRecording(c10::Device device, OperationTrace& trace, HostPart& part)
    : device_(device),
      trace_(trace),
      part_(&part),
      outer_(std::exchange(current_recording, this)) {}

StepRecording::~StepRecording() { current_recording = outer_; }

StepRecording* StepRecording::current() { return current_recording; }

Tensor StepRecording::host_values(at::IntArrayRef shape, DType dtype, HostPart::Fill fill) {
  const HostPart::Values form{shape.vec(), dtype};
  const size_t i = values_.size();
  values_.push_back(form);
  if (part_ == nullptr) {
    const OperationTrace::Pause pause(trace_);
    const Tensor host = host_buffer(shape, dtype, device_);
    fill(host);
    return host.to(device_, /*non_blocking=*/true);
  }
  if (!part_->has(i, form)) refuse("it takes other values from the host than in the step before");
  part_->add(i, std::move(fill));
  trace_.add_made(part_->on_device(i));
  return part_->on_device(i);
}

Tensor StepRecording::constant(const Tensor& host) {
  trace_.add_constant(host);
  return host_values(host.sizes(), host.scalar_type(),
                     [host](const Tensor& to) { to.copy_(host); });
}

void StepRecording::each_time(std::function<void()> action) {
  if (part_ == nullptr) return action();
  part_->add(std::move(action));
}

void StepRecording::copy_to_host(std::shared_ptr<const void> object, FunctionRef<void()> copies) {
  const OperationTrace::Pause pause(trace_);
  keep(std::move(object));
  copies();
}

void StepRecording::keep(std::shared_ptr<const void> object) {
  if (part_ != nullptr) part_->keep(std::move(object));
}

void StepRecording::refuse(std::string why) {
  if (refusal_.empty()) refusal_ = std::move(why);
  if (part_ != nullptr) throw NotRecordable();
}

}  // namespace cohort::internal

#include "cohort/core/recording/step_recording.h"

#include <ATen/ops/zeros.h>

#include <numeric>
#include <utility>

#include "cohort/core/structure/host_buffer.h"

namespace cohort::internal {
namespace {

thread_local StepRecording* current_recording = nullptr;

// Each tensor begins where kernels read several elements at once.
constexpr int64_t kAlignment = 64;  // bytes

int64_t bytes_of(const HostPart::Values& values) {
  return std::accumulate(values.shape.begin(), values.shape.end(),
                         static_cast<int64_t>(c10::elementSize(values.dtype)), std::multiplies<>());
}

}  // namespace

HostPart::HostPart(c10::Device device, const std::vector<Values>& all) : device_(device) {
  int64_t end = 0;
  for (const Values& values : all) {
    places_.push_back({values, end, bytes_of(values), {}});
    end += (places_.back().size + kAlignment - 1) / kAlignment * kAlignment;
  }
  on_device_ = at::zeros({end}, at::dtype(at::kByte).device(device));
  // Autograd counts what is written to each for itself.
  for (Place& place : places_) place.on_device = place.in(on_device_).variable_data();
}

Tensor HostPart::Place::in(const Tensor& bytes) const {
  return bytes.narrow(0, begin, size).view(form.dtype).view(form.shape);
}

bool HostPart::has(size_t i, const Values& values) const {
  return i < places_.size() && places_[i].form == values;
}

void HostPart::add(size_t i, Fill fill) {
  actions_.push_back([this, i, fill = std::move(fill)] { fill(places_[i].in(on_host_)); });
}

void HostPart::run() {
  // Fresh memory in each step, for the device may not have read the last step's yet; libtorch keeps
  // page-locked memory until the device has.
  on_host_ = host_buffer(on_device_.sizes(), at::kByte, device_);
  for (const std::function<void()>& action : actions_) action();
  if (!places_.empty()) on_device_.copy_(on_host_, /*non_blocking=*/true);
  on_host_.reset();
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

// What the host does in a step that is recorded: values that change from step to step, and what is
// counted. Code that runs in steps tells it here:
//
//   if (StepRecording* recording = StepRecording::current()) {
//     mask = recording->host_values(shape, float32, [=](const Tensor& host) { draw(host); });
//   }
#pragma once

#include <c10/core/Device.h>

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cohort/core/function_ref.h"
#include "cohort/core/recording/operation_trace.h"
#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

// The host's part in each replay of a step: what its code did in the step, in the same order.
class HostPart {
 public:
  using Fill = std::function<void(const Tensor& host)>;
  // A tensor that the host writes for each replay.
  struct Values {
    std::vector<int64_t> shape;
    DType dtype;
    bool operator==(const Values&) const = default;
  };

  // Has memory of the device for `all`, which no graph uses for anything else.
  HostPart(c10::Device device, const std::vector<Values>& all);

  size_t num_values() const { return places_.size(); }
  // Whether values `i` are of this form.
  bool has(size_t i, const Values& values) const;
  const Tensor& on_device(size_t i) const { return places_[i].on_device; }

  // What run() does next. `fill` writes values `i`.
  void add(std::function<void()> action) { actions_.push_back(std::move(action)); }
  void add(size_t i, Fill fill);
  void keep(std::shared_ptr<const void> object) { kept_.push_back(std::move(object)); }

  // Calls all actions, then lets the device copy the values. Waits for nothing.
  // Errors: those of the actions; nothing was copied then.
  void run();

 private:
  struct Place {
    Values form;
    int64_t begin;  // its bytes
    int64_t size;
    Tensor on_device;

    Tensor in(const Tensor& bytes) const;
  };

  const c10::Device device_;
  std::vector<Place> places_;
  // The bytes of all values, which travel together.
  Tensor on_device_;
  Tensor on_host_;  // during run()
  std::vector<std::function<void()>> actions_;
  std::vector<std::shared_ptr<const void>> kept_;
};

// Thrown in a step that is being recorded and cannot be.
class NotRecordable final : public std::exception {
 public:
  const char* what() const noexcept override { return "this step cannot be recorded"; }
};

// The recording of the calling thread's step, or a rehearsal of it. In a rehearsal the step does
// all that it does otherwise. While it is recorded it changes nothing: what the device is asked to
// do, and what the host would do, is put off to the replays.
// Thread safety: the thread that made it.
class StepRecording {
 public:
  // A rehearsal. What the step asks for is listed in values().
  StepRecording(c10::Device device, OperationTrace& trace);
  // The recording of a step that was rehearsed. `part` has memory for its values.
  StepRecording(c10::Device device, OperationTrace& trace, HostPart& part);
  ~StepRecording();
  StepRecording(const StepRecording&) = delete;
  StepRecording& operator=(const StepRecording&) = delete;

  // nullptr: the calling thread records none.
  static StepRecording* current();

  bool is_rehearsal() const { return part_ == nullptr; }
  const std::vector<HostPart::Values>& values() const { return values_; }
  // Why it was refused; empty: it was not. Code in between may have caught what refuse has thrown.
  const std::string& refusal() const { return refusal_; }

  // A tensor of the device with what `fill` writes, anew in each step, in order with other actions.
  Tensor host_values(at::IntArrayRef shape, DType dtype, HostPart::Fill fill);
  // The host's tensor on the device. It must be the same in each step.
  Tensor constant(const Tensor& host);
  // Calls `action` in each step.
  void each_time(std::function<void()> action);
  // Calls `copies`, which lets the device copy to memory of the host that lives as long as
  // `object`, and looks at it in a later step.
  void copy_to_host(std::shared_ptr<const void> object, FunctionRef<void()> copies);
  // Keeps alive what the actions refer to.
  void keep(std::shared_ptr<const void> object);
  // Says why the step cannot be recorded. Returns in a rehearsal.
  // Errors: NotRecordable.
  void refuse(std::string why);

 private:
  const c10::Device device_;
  OperationTrace& trace_;
  HostPart* const part_;  // nullptr: a rehearsal
  StepRecording* const outer_;
  std::vector<HostPart::Values> values_;
  std::string refusal_;
};

}  // namespace cohort::internal

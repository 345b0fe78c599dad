#include "cohort/keras/base/range_watch.h"

#include <ATen/ops/aminmax.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/recording/step_recording.h"
#include "cohort/core/structure/host_buffer.h"
#include "cohort/core/text.h"
#include "cohort/distribute/strategies/context.h"
#include "cohort/ops/gradient_tape.h"

namespace cohort::internal {
namespace {

// The step of the calling thread; 0: it is in none that is counted.
int64_t current_step() {
  const distribute::ReplicaContext* const replica = distribute::get_replica_context();
  return replica == nullptr ? 0 : replica->step();
}

const StrategyCore* current_core() {
  const distribute::ReplicaContext* const replica = distribute::get_replica_context();
  return replica == nullptr ? nullptr : &replica->core();
}

}  // namespace

class RangeWatch::Slot {
 public:
  Slot(const RangeWatch& watch, c10::Device device, int64_t end)
      : thread_(std::this_thread::get_id()),
        device_(device),
        end_(end),
        core_(current_core()),
        what_(watch.what_),
        advice_(watch.advice_),
        on_device_(at::zeros({kNumbers}, at::dtype(int64).device(device))),
        on_host_(host_buffer({kNumbers}, int64, device).zero_()) {}

  bool is_for(c10::Device device, int64_t end) const {
    return thread_ == std::this_thread::get_id() && device_ == device && end_ == end &&
           core_ == current_core();
  }
  bool is_of(const StrategyCore& core) const { return core_ == &core; }

  // Errors: InvalidArgument, once for each time that the device has seen a wrong number.
  void check() {
    const std::lock_guard lock(mutex_);
    const volatile int64_t* const seen = on_host_.data_ptr<int64_t>();
    const int64_t least = seen[kLeast], largest = seen[kLargest], step = seen[kStep];
    if (step <= forgotten_) return;  // written before the device has forgotten the wrong number
    if (least >= 0 && largest < end_) {
      right_through_ = step;
      return;
    }
    const int64_t first = std::min(std::max(right_through_, forgotten_) + 1, step);
    forgotten_ = latest_;
    on_device_.narrow(0, kLeast, kStep).zero_();
    const std::string when = !in_steps_      ? "an earlier call"
                             : first == step ? str("step ", step)
                                             : str("one of the steps ", first, " to ", step);
    throw InvalidArgumentError(str(what_, ' ', least < 0 ? least : largest, " of ", when,
                                   " is outside [0, ", end_, ")", advice_));
  }

  // Checks all numbers that the device was given, and waits for it where it needs to.
  void check_all() {
    check();
    const auto is_done = [this] {
      const std::lock_guard lock(mutex_);
      return std::max(right_through_, forgotten_) >= latest_;
    };
    if (is_done()) return;
    on_device_.cpu();  // waits
    check();
  }

  // The next numbers come; they are those of the returned step.
  int64_t begin() {
    const std::lock_guard lock(mutex_);
    const int64_t step = current_step();
    in_steps_ = step > 0;
    if (in_steps_ && step < latest_) right_through_ = forgotten_ = 0;  // another strategy's
    latest_ = in_steps_ ? step : latest_ + 1;
    return latest_;
  }

  // Lets the device note numbers of a step.
  void note(const Tensor& numbers) {
    const Tensor bounds = on_device_.narrow(0, kLeast, kStep);
    const Tensor all = at::cat({bounds, numbers.detach().reshape({-1})});
    Tensor least = on_device_.select(0, kLeast), largest = on_device_.select(0, kLargest);
    at::aminmax_out(least, largest, all);
  }
  Tensor step() const { return on_device_.select(0, kStep); }
  void copy_to_host() { on_host_.copy_(on_device_, /*non_blocking=*/true); }

 private:
  enum Number { kLeast, kLargest, kStep, kNumbers };

  const std::thread::id thread_;
  const c10::Device device_;
  const int64_t end_;
  const StrategyCore* const core_;
  const std::string what_;
  const std::string advice_;
  const Tensor on_device_;
  const Tensor on_host_;
  std::mutex mutex_;  // guards what follows
  bool in_steps_ = false;
  int64_t latest_ = 0;         // the step whose numbers came last
  int64_t right_through_ = 0;  // the last step that is known to be right
  int64_t forgotten_ = 0;      // errors up to this step were thrown
};

namespace {

// Every slot of the process, for check().
template <class Slot>
struct AllSlots {
  std::mutex mutex;
  std::vector<std::weak_ptr<Slot>> slots;  // guarded by mutex

  // Never destroyed: losses may be static.
  static AllSlots& instance() {
    static auto* const all = new AllSlots;
    return *all;
  }
  void add(const std::shared_ptr<Slot>& slot) {
    const std::lock_guard lock(mutex);
    std::erase_if(slots, [](const auto& one) { return one.expired(); });
    slots.push_back(slot);
  }
};

}  // namespace

RangeWatch::RangeWatch(std::string what, std::string advice)
    : what_(std::move(what)), advice_(std::move(advice)) {}

std::shared_ptr<RangeWatch::Slot> RangeWatch::slot_of(c10::Device device, int64_t end) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(slots_.begin(), slots_.end(),
                                  [&](const auto& one) { return one->is_for(device, end); });
  if (found != slots_.end()) return *found;
  slots_.push_back(std::make_shared<Slot>(*this, device, end));
  AllSlots<Slot>::instance().add(slots_.back());
  return slots_.back();
}

Tensor RangeWatch::look(const Tensor& numbers, int64_t end) {
  if (numbers.numel() == 0) return numbers;
  const NoGradient no_gradient;
  const std::shared_ptr<Slot> slot = slot_of(numbers.device(), end);
  StepRecording* const recording = StepRecording::current();
  if (recording == nullptr) {
    slot->check();
    slot->note(numbers);
    slot->step().fill_(slot->begin());
    slot->copy_to_host();
  } else {
    recording->each_time([slot] { slot->check(); });
    slot->note(numbers);
    slot->step().copy_(recording->host_values(
        {}, int64, [slot](const Tensor& host) { *host.data_ptr<int64_t>() = slot->begin(); }));
    recording->copy_to_host(slot, [&] { slot->copy_to_host(); });
  }
  return numbers.clamp(0, end - 1);
}

void RangeWatch::check(const StrategyCore& core) {
  auto& all = AllSlots<Slot>::instance();
  std::vector<std::shared_ptr<Slot>> of_core;
  {
    const std::lock_guard lock(all.mutex);
    for (const auto& one : all.slots) {
      if (auto slot = one.lock(); slot != nullptr && slot->is_of(core)) of_core.push_back(slot);
    }
  }
  for (const auto& slot : of_core) slot->check_all();
}

}  // namespace cohort::internal

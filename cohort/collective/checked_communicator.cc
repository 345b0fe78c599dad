#include "cohort/collective/checked_communicator.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "cohort/collective/call_fingerprint.h"
#include "cohort/collective/call_plan.h"
#include "cohort/collective/groups_of_task.h"
#include "cohort/collective/sum_division.h"
#include "cohort/core/function_ref.h"

namespace cohort::collective {
namespace {

using internal::str;

constexpr const char* kOneOrder = "every task must make the same calls in one order";
constexpr const char* kSameSteps =
    "every task must run as many steps, and make the same calls in each, whatever its data are";

// The number of bytes that gather_bytes exchanges first, and with it its fingerprint.
constexpr int64_t kNumberOfBytes = sizeof(int64_t);

// A call that this task is about to make.
struct CheckedCall {
  const char* operation;
  std::span<const Buffer> buffers;
  const CallOptions& options;
  std::span<const int64_t> counts = {};
  int root = -1;
  bool gathers = false;
  int64_t most_brought = 0;  // bytes, of a call without buffers
  int64_t most_parts = 1;    // values of the buffer's size that a task brings

  uint64_t fingerprint() const {
    const bool has_values = !buffers.empty();
    return CallIdentity{.operation = operation,
                        .name = options.name,
                        .signature = options.signature,
                        .root = root,
                        .count = has_values ? buffers[0].count : 0,
                        .dtype = has_values ? static_cast<int>(buffers[0].dtype) : -1,
                        .parts = counts}
        .fingerprint();
  }

  // The most bytes that a task sends in this call; in a gather, its own part.
  int64_t most_bytes() const {
    if (buffers.empty()) return most_brought;
    if (!gathers) return buffers[0].bytes() * most_parts;
    const int64_t largest = *std::max_element(counts.begin(), counts.end());
    return largest * static_cast<int64_t>(c10::elementSize(buffers[0].dtype));
  }

  // For messages.
  std::string text() const {
    std::string text = str(operation, " '", options.name, "'");
    if (root >= 0) text += str(" from task ", root);
    if (!counts.empty()) text += " in parts of";
    for (const int64_t count : counts) text += str(' ', count);
    if (!buffers.empty()) {
      text += str(" of ", buffers[0].count, ' ', internal::dtype_name(buffers[0].dtype));
    }
    if (!options.signature.empty()) text += str(", ", options.signature);
    return text;
  }
};

// A task's description of its call, for the case that the calls differ.
struct Announcement {
  CallPlace place;
  char text[240] = {};  // cut where it is longer
};

// "in step 7", "after step 7"
std::string during(int64_t phase) {
  if (phase == 0) return "before step 1";
  return str(phase % 2 == 1 ? "in step " : "after step ", (phase + 1) / 2);
}

class Checked final : public CheckedCommunicator {
 public:
  explicit Checked(std::shared_ptr<Communicator> backend)
      : backend_(std::move(backend)),
        compares_all_(backend_->compares_fingerprints(std::numeric_limits<int64_t>::max())),
        fingerprints_(static_cast<size_t>(backend_->size())),
        one_each_(fingerprints_.size(), 1) {
    if (size() > 1) group_of_task_.emplace();
  }

  int rank() const override { return backend_->rank(); }
  int size() const override { return backend_->size(); }
  int64_t generation() const override { return backend_->generation(); }
  std::string task_name(int rank) const override { return backend_->task_name(rank); }
  Buffer buffer(int64_t bytes) override { return backend_->buffer(bytes); }
  bool works_on(c10::Device device) const override { return backend_->works_on(device); }
  void check_alive() override { backend_->check_alive(); }

  std::unique_ptr<Work> all_reduce(std::span<const Buffer> buffers,
                                   const CallOptions& options) override {
    return make({"all_reduce", buffers, options},
                [&](const CallOptions& agreed) { return backend_->all_reduce(buffers, agreed); });
  }
  void use_division(std::shared_ptr<const SumDivision> division) override {
    Communicator::use_division(division);
    backend_->use_division(std::move(division));
  }
  void all_reduce_parts(const Buffer& parts, const CallOptions& options) override {
    make({.operation = "all_reduce_parts",
          .buffers = {&parts, 1},
          .options = options,
          .most_parts = static_cast<int64_t>(division().most_parts())},
         [&](const CallOptions& agreed) -> std::unique_ptr<Work> {
           backend_->all_reduce_parts(parts, agreed);
           return nullptr;
         });
  }
  std::unique_ptr<Work> reduce_scatter(std::span<const Buffer> buffers,
                                       std::span<const int64_t> counts,
                                       const CallOptions& options) override {
    check_counts("reduce_scatter", buffers, counts);
    return make({"reduce_scatter", buffers, options, counts}, [&](const CallOptions& agreed) {
      return backend_->reduce_scatter(buffers, counts, agreed);
    });
  }
  std::unique_ptr<Work> all_gather(std::span<const Buffer> buffers, std::span<const int64_t> counts,
                                   const CallOptions& options) override {
    check_counts("all_gather", buffers, counts);
    return make(
        {.operation = "all_gather",
         .buffers = buffers,
         .options = options,
         .counts = counts,
         .gathers = true},
        [&](const CallOptions& agreed) { return backend_->all_gather(buffers, counts, agreed); });
  }
  std::unique_ptr<Work> broadcast(std::span<const Buffer> buffers, int root,
                                  const CallOptions& options) override {
    return make({"broadcast", buffers, options, {}, root}, [&](const CallOptions& agreed) {
      return backend_->broadcast(buffers, root, agreed);
    });
  }
  void barrier(const CallOptions& options) override {
    make({"barrier", {}, options}, [&](const CallOptions& agreed) -> std::unique_ptr<Work> {
      // Else the exchange of fingerprints was one.
      if (agreed.fingerprint != 0) backend_->barrier(agreed);
      return nullptr;
    });
  }
  void gather_bytes(std::span<const char> mine, GatheredBytes& all,
                    const CallOptions& options) override {
    make({.operation = "gather_bytes",
          .buffers = {},
          .options = options,
          .most_brought = kNumberOfBytes},
         [&](const CallOptions& agreed) -> std::unique_ptr<Work> {
           backend_->gather_bytes(mine, all, agreed);
           return nullptr;
         });
  }
  void abort(const std::exception_ptr& reason) noexcept override {
    ended_ = true;
    backend_->abort(reason);
  }

  void begin_step() override { phase_ = (phase_ + 1) | 1; }
  void end_step() override { phase_ = (phase_ + 1) & ~int64_t{1}; }
  uint64_t calls() const override { return sequence_; }

 private:
  using Make = FunctionRef<std::unique_ptr<Work>(const CallOptions&)>;

  void check_counts(const char* call, std::span<const Buffer> buffers,
                    std::span<const int64_t> counts) const {
    const int64_t total = std::accumulate(counts.begin(), counts.end(), int64_t{0});
    if (static_cast<int>(counts.size()) == size() && total == buffers[0].count) return;
    throw InvalidArgumentError(str(call, " got ", counts.size(), " counts that add up to ", total,
                                   "; it takes one for each of ", size(),
                                   " tasks, which add up to the buffer's ", buffers[0].count));
  }

  std::unique_ptr<Work> make(const CheckedCall& call, Make make_call) {
    CallOptions options = call.options;
    options.plan = nullptr;
    if (size() == 1) return make_call(options);
    const CallPlace place{generation(), sequence_++, phase_};
    if (!compares(call)) return agree_and_make(call, place, make_call, options);
    options.fingerprint = placed_fingerprint(call.fingerprint(), place);
    try {
      return make_call(options);
    } catch (const DifferentCallsError&) {
      refuse(call.text(), place);
    }
  }

  // Whether the backend checks the call. A plan knows all of its calls, or none.
  bool compares(const CheckedCall& call) const {
    if (compares_all_) return true;
    return call.options.plan == nullptr && promised_ == nullptr &&
           backend_->compares_fingerprints(call.most_bytes());
  }

  std::unique_ptr<Work> agree_and_make(const CheckedCall& call, const CallPlace& place,
                                       Make make_call, const CallOptions& options) {
    try {
      agree(call, place);
      return make_call(options);
    } catch (...) {  // there is no promise to keep in what is left
      promised_ = nullptr;
      throw;
    }
  }

  void agree(const CheckedCall& call, const CallPlace& place) {
    CallPlan* const plan = call.options.plan;
    const uint64_t fingerprint = call.fingerprint();
    if (promised_ != nullptr && !ended_) return keep_promise(call, fingerprint, place);
    const bool whole_plan = plan != nullptr && plan->agreed();
    if (whole_plan && fingerprint == plan->fingerprint(0)) {
      exchange(plan->fingerprint(), call, place,
               str(", the first of ", plan->size(), " planned calls"));
      plan->advance();
      if (plan->next() != 0) promised_ = plan->shared_from_this();
      promised_phase_ = place.phase;
      return;
    }
    exchange(fingerprint, call, place, {});
    if (whole_plan) plan->forget();
    if (plan != nullptr) plan->learn(fingerprint, call.text(), place);
  }

  // All tasks have agreed on the next calls, and may be in them already.
  void keep_promise(const CheckedCall& call, uint64_t fingerprint, const CallPlace& place) {
    CallPlan& plan = *promised_;
    if (call.options.plan == &plan && fingerprint == plan.fingerprint(plan.next()) &&
        place.phase == promised_phase_) {
      plan.advance();
      if (plan.next() == 0) promised_ = nullptr;
      return;
    }
    const FailedPreconditionError error(str(
        "tasks make different collective calls: ", task_name(rank()), " call ", place.sequence,
        ", ", call.text(), ", ", during(place.phase), "; the others, as agreed in earlier steps, ",
        plan.text(plan.next()), ", ", during(promised_phase_), "; ",
        place.phase == promised_phase_ ? kOneOrder : kSameSteps));
    backend_->abort(std::make_exception_ptr(error));
    throw error;
  }

  // fingerprint: of the call, or of its whole plan.
  void exchange(uint64_t fingerprint, const CheckedCall& call, const CallPlace& place,
                std::string_view more) {
    CallOptions options = call.options;
    options.plan = nullptr;
    if (are_same(placed_fingerprint(fingerprint, place), options)) return;
    if (call.options.plan != nullptr) call.options.plan->forget();
    refuse(call.text() + std::string(more), place);
  }

  // Over all tasks.
  bool are_same(uint64_t fingerprint, CallOptions options) {
    if (backend_->compares_fingerprints(0)) {
      options.fingerprint = fingerprint;
      try {
        backend_->barrier(options);
      } catch (const DifferentCallsError&) {
        return false;
      }
      return true;
    }
    fingerprints_[static_cast<size_t>(rank())] = static_cast<int64_t>(fingerprint);
    const auto count = static_cast<int64_t>(fingerprints_.size());
    collective::all_gather(*backend_, {fingerprints_.data(), count, int64}, one_each_, options);
    const auto same = [&](int64_t other) { return other == fingerprints_[0]; };
    return std::all_of(fingerprints_.begin(), fingerprints_.end(), same);
  }

  // Every task comes here, since all have seen that the calls differ, and throws the same.
  [[noreturn]] void refuse(const std::string& text, const CallPlace& place) {
    std::vector<Announcement> all(static_cast<size_t>(size()));
    Announcement& mine = all[static_cast<size_t>(rank())];
    mine = {place, {}};
    std::memcpy(mine.text, text.data(), std::min(text.size(), sizeof mine.text - 1));
    const std::vector<int64_t> bytes_each(all.size(), sizeof(Announcement));
    const auto bytes = static_cast<int64_t>(all.size() * sizeof(Announcement));
    collective::all_gather(*backend_, {all.data(), bytes, uint8}, bytes_each,
                           {.name = "the calls that differ"});
    for (const Announcement& other : all) throw_if_different(all, other);
    throw FailedPreconditionError(
        str("tasks make different collective calls that begin alike: ", text, "; ", kOneOrder));
  }

  void throw_if_different(const std::vector<Announcement>& all, const Announcement& second) const {
    const Announcement& first = all.front();
    const std::string one = task_name(0);
    const std::string other = task_name(static_cast<int>(&second - all.data()));
    if (first.place.generation != second.place.generation) {
      throw FailedPreconditionError(str(one, " is in generation ", first.place.generation,
                                        " of the group, ", other, " in ", second.place.generation,
                                        "; form the group again"));
    }
    const std::string_view first_text = first.text, second_text = second.text;
    if (first.place == second.place && first_text == second_text) return;
    const auto call_of = [](const std::string& task, const Announcement& call) {
      return str(task, " call ", call.place.sequence, ", ", call.text, ", ",
                 during(call.place.phase));
    };
    const std::string text = str("tasks make different collective calls: ", call_of(one, first),
                                 "; ", call_of(other, second), "; ");
    if (first.place.phase == second.place.phase) throw FailedPreconditionError(text + kOneOrder);
    const bool first_is_ahead = first.place.phase > second.place.phase;
    throw FailedPreconditionError(str(text, first_is_ahead ? one : other,
                                      " has made fewer calls than ", first_is_ahead ? other : one,
                                      ' ', during(std::min(first.place.phase, second.place.phase)),
                                      " (steps are counted since the group formed); ", kSameSteps));
  }

  const std::shared_ptr<Communicator> backend_;
  const bool compares_all_;
  uint64_t sequence_ = 0;
  std::atomic<int64_t> phase_{0};       // see CallPlace; read by calls of a step that was given up
  std::atomic<bool> ended_{false};      // aborted by this task: every call is refused
  std::shared_ptr<CallPlan> promised_;  // of which some calls are still to come
  int64_t promised_phase_ = 0;          // in which the promise was given
  std::vector<int64_t> fingerprints_;   // one a task; bits of a uint64_t
  const std::vector<int64_t> one_each_;
  std::optional<GroupOfTask> group_of_task_;
};

}  // namespace

std::shared_ptr<CheckedCommunicator> checked(std::shared_ptr<Communicator> backend) {
  return std::make_shared<Checked>(std::move(backend));
}

}  // namespace cohort::collective

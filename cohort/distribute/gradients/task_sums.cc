#include "cohort/distribute/gradients/task_sums.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "cohort/collective/call_fingerprint.h"
#include "cohort/collective/task_collectives.h"
#include "cohort/core/text_stream.h"
#include "cohort/distribute/variables/variable_impl.h"

namespace cohort::internal {

using distribute::Variable;

namespace {

// Large enough that a call's fixed cost does not count, small enough that the first bucket leaves
// early in the backward pass.
constexpr int64_t kBytesPerTaskBucket = 1 << 20;

std::string text_of(const Variable& variable) {
  return str("'", variable.name(), "' ", dtype_name(variable.dtype()), ' ',
             shape_str(variable.shape()));
}

uint64_t fingerprint_of(const Variable& variable) {
  collective::CallFingerprint all;
  all.add(text_of(variable));
  return all.value();
}

// The step as text, with as many digits as tell two rates apart.
std::string text_of(const UpdateStep& step) {
  TextStream text;
  text.precision(std::numeric_limits<double>::max_digits10);
  const optim::RuleConfig config = step.rule.config();
  text << config.name << " with ";
  if (step.rate_is_scheduled) {
    text << "a schedule";
  } else {
    text << "learning_rate " << step.learning_rate;
  }
  for (const auto& [name, value] : config.values) text << ", " << name << ' ' << value;
  if (const auto& transform = config.transform) {
    text << ", clipvalue " << transform->clipvalue << ", weight_decay "
         << transform->weight_decay.value_or(0) << ", ema_momentum "
         << transform->ema_momentum.value_or(0) << " every " << transform->ema_overwrite_frequency;
  }
  if (step.transforms_sums()) {
    text << ", clipnorm " << step.clipnorm << ", global_clipnorm " << step.global_clipnorm
         << (step.skip_not_finite ? ", finite alone" : "");
  }
  return std::move(text).str();
}

// A message's text in a fixed number of bytes.
struct ShortText {
  explicit ShortText(std::string_view text) {
    std::memcpy(bytes, text.data(), std::min(text.size(), sizeof bytes - 1));
  }
  char bytes[256] = {};
};

// Every task comes here, and throws the same.
[[noreturn]] void throw_different(collective::SyncGroup& group, size_t task,
                                  const std::string& where, const std::string& own) {
  const auto texts = collective::all_tasks_values(group, ShortText(own), "variables that differ");
  throw InvalidArgumentError(str("apply_gradients: ", where, "task 0 updates ", texts[0].bytes,
                                 ", task ", task, " updates ", texts[task].bytes,
                                 "; every task must update the same variables in one order"));
}

}  // namespace

TaskSums::TaskSums(const std::vector<Variable>& variables, const ReplicaGradients& gradients,
                   collective::SyncGroup& group, int64_t bytes_per_pack)
    : variables_(variables),
      gradients_(gradients),
      group_(group),
      bytes_per_pack_(bytes_per_pack > 0 ? bytes_per_pack : kBytesPerTaskBucket),
      packed_(variables.size(), false),
      late_(variables_, gradients, group),
      dense_(variables.size()),
      rows_(variables.size()),
      merged_(variables.size()) {}

void TaskSums::begin() {
  if (signature_.empty()) return;  // the first step: all of them are late
  divide();
  buckets_->begin();
}

void TaskSums::arrived(size_t variable) {
  if (divided_) buckets_->arrived(variable);
}

void TaskSums::settle(Contributions local, Arrival arrival) {
  if (signature_.empty()) {
    agree_on_variables();
    std::vector<size_t> all(variables_.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    late_.use(all, signature_);
    late_.agree(local);
    for (const LateGradients::Sum& sum : late_.sums()) {
      packed_[sum.variable] = sum.count.present > sum.count.sparse;
    }
    buckets_ = make_buckets();
    buckets_->begin();
  } else if (arrival == Arrival::kAtOnce) {
    begin();
  }
}

void TaskSums::add_up_rest() { buckets_->add_up_rest(); }

void TaskSums::finish(Contributions local, const UpdateStep& step) {
  late_.write(local);
  buckets_->wait();
  agree_on_update(step);
  late_.exchange(*buckets_);
  std::fill(rows_.begin(), rows_.end(), std::span<const SparseRows>());
  for (size_t i = 0; i < variables_.size(); ++i) {
    dense_[i] = Tensor();
    if (!buckets_->contains(i)) continue;
    const GradientCount count = buckets_->count(i);
    if (count.present > 0) dense_[i] = buckets_->sum(i);
    if (count.present > 0 && count.present == count.sparse) keep_packed(i, false);
  }
  for (LateGradients::Sum& sum : late_.sums()) {
    if (buckets_->contains(sum.variable) || sum.count.present == 0) continue;
    if (sum.is_rows()) {
      rows_[sum.variable] = sum.of_parts;
    } else {
      dense_[sum.variable] = sum.dense;
      keep_packed(sum.variable, true);
    }
  }
}

void TaskSums::merge_rows() {
  for (LateGradients::Sum& sum : late_.sums()) {
    if (rows_[sum.variable].empty()) continue;
    late_.merge(sum);
    rows_[sum.variable] = {&sum.in_order, 1};
    merged_[sum.variable] = &sum.merged;
  }
}

void TaskSums::agree_on_update(const UpdateStep& step) {
  const double rate = step.rate_is_scheduled ? 0 : step.learning_rate;
  if (agreed_rate_ == rate) return;
  const std::string signature = text_of(step);
  group_.between().barrier({.name = "update by another rule or rate",
                            .signature = signature,
                            .timeout = group_.timeout()});
  agreed_rate_ = rate;
}

// Changes how the variable's gradients travel, from the next step on.
void TaskSums::keep_packed(size_t variable, bool packed) {
  packed_[variable] = packed;
  divided_ = false;
}

void TaskSums::divide() {
  if (divided_) return;
  buckets_.reset();  // its memory can serve the new ones
  buckets_ = make_buckets();
  std::vector<size_t> late;
  for (size_t i = 0; i < packed_.size(); ++i) {
    if (!packed_[i]) late.push_back(i);
  }
  late_.use(late, signature_);
  divided_ = true;
}

std::unique_ptr<TaskBuckets> TaskSums::make_buckets() const {
  std::vector<size_t> packed;
  for (size_t i = 0; i < packed_.size(); ++i) {
    if (packed_[i]) packed.push_back(i);
  }
  return std::make_unique<TaskBuckets>(
      variables_, packed, gradients_, group_,
      TaskBucketsOptions{.bytes_per_pack = bytes_per_pack_, .signature = signature_});
}

void TaskSums::agree_on_variables() {
  const auto count = static_cast<int64_t>(variables_.size());
  const std::vector<int64_t> counts =
      collective::all_tasks_values(group_, count, "number of variables to update");
  for (size_t task = 1; task < counts.size(); ++task) {
    if (counts[task] == counts[0]) continue;
    throw_different(group_, task, "",
                    str(count, " variables, the first ",
                        count > 0 ? text_of(variables_[0]) : std::string("of none")));
  }
  std::vector<int64_t> all(counts.size() * variables_.size());
  collective::CallFingerprint list;
  const size_t first = static_cast<size_t>(group_.view()->task) * variables_.size();
  for (size_t i = 0; i < variables_.size(); ++i) {
    const uint64_t one = fingerprint_of(variables_[i]);
    all[first + i] = static_cast<int64_t>(one);
    list.add(one);
  }
  collective::all_gather(group_.between(), {all.data(), static_cast<int64_t>(all.size()), int64},
                         counts, {.name = "variables to update", .timeout = group_.timeout()});
  for (size_t i = 0; i < variables_.size(); ++i) {
    for (size_t task = 1; task < counts.size(); ++task) {
      if (all[task * variables_.size() + i] == all[i]) continue;
      throw_different(group_, task, str("at position ", i, ' '), text_of(variables_[i]));
    }
  }
  signature_ = str("variables ", list.value());
}

}  // namespace cohort::internal

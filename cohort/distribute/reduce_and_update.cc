#include "cohort/distribute/reduce_and_update.h"

#include <algorithm>
#include <cstring>

#include "cohort/collective/slices.h"
#include "cohort/collective/thread_group.h"
#include "cohort/distribute/strategy_core.h"
#include "cohort/distribute/variable_impl.h"

namespace cohort::internal {
namespace {

using collective::SliceRange;
using distribute::ReplicaContext;

// What one replica brings to the pass.
struct Contribution {
  int replica = 0;
  std::span<const UpdateTarget> targets;
  c10::SmallVector<Tensor, 16> gradients;  // dense, contiguous, on the CPU; undefined where none
};

using Contributions = std::span<void* const>;

const Contribution& of_replica(Contributions all, size_t replica) {
  return *static_cast<const Contribution*>(all[replica]);
}

Tensor usable_gradient(const Tensor& gradient, const VariableImpl& variable, int replica) {
  if (!gradient.defined()) return gradient;
  const Tensor dense = gradient.is_sparse() ? gradient.to_dense() : gradient;
  if (dense.sizes() != variable.shape() || dense.scalar_type() != variable.dtype()) {
    throw InvalidArgumentError(str("the gradient of variable '", variable.options().name,
                                   "' on replica ", replica, " is ", describe(dense),
                                   ", but the variable is ", dtype_name(variable.dtype()), " ",
                                   shape_str(variable.shape())));
  }
  return dense.detach().to(at::kCPU).contiguous();
}

Contribution prepare(const ReplicaContext& context, std::span<const Tensor> gradients,
                     std::span<const UpdateTarget> targets) {
  if (gradients.size() != targets.size()) {
    throw InvalidArgumentError(str("apply_gradients got ", gradients.size(), " gradients for ",
                                   targets.size(), " variables"));
  }
  Contribution mine;
  mine.replica = context.replica_id_in_sync_group();
  mine.targets = targets;
  for (size_t i = 0; i < targets.size(); ++i) {
    mine.gradients.push_back(
        usable_gradient(gradients[i], targets[i].variable.impl(), mine.replica));
  }
  return mine;
}

void check_same_targets(Contributions all) {
  const auto targets = of_replica(all, 0).targets;
  for (size_t r = 1; r < all.size(); ++r) {
    const auto others = of_replica(all, r).targets;
    if (others.size() != targets.size()) {
      throw InvalidArgumentError(str("apply_gradients: replica 0 updates ", targets.size(),
                                     " variables, replica ", r, " updates ", others.size()));
    }
    for (size_t i = 0; i < targets.size(); ++i) {
      if (targets[i].variable == others[i].variable) continue;
      throw InvalidArgumentError(str("apply_gradients: at position ", i, " replica 0 updates '",
                                     targets[i].variable.name(), "', replica ", r, " '",
                                     others[i].variable.name(), "'"));
    }
  }
}

// One thread's part of the pass.
class SlicePass {
 public:
  SlicePass(Contributions all, const optim::UpdateRule& rule, const optim::StepScalars& scalars,
            bool aggregate)
      : all_(all.first(aggregate ? all.size() : 1)), rule_(rule), scalars_(scalars) {}

  // Updates elements [range) of target `i`, whose components are on the CPU.
  void update(size_t i, SliceRange range) {
    const UpdateTarget& target = of_replica(all_, 0).targets[i];
    if (!collect_sources(i)) return;
    param_ = &target.variable.impl().component(0);
    slots_.clear();
    for (const auto& slot : target.slots) slots_.push_back(&slot.impl().component(0));
    for (int64_t begin = range.begin; begin < range.end; begin += kBlock) {
      const int64_t count = std::min(kBlock, range.end - begin);
      update_block(begin, count);
      copy_to_other_components(target.variable.impl(), begin, count);
      for (const auto& slot : target.slots) copy_to_other_components(slot.impl(), begin, count);
    }
  }

  // Updates the whole of target `i` on another kind of device, by way of the host: rules work on
  // the host's memory. Correct, not fast.
  void update_on_device(size_t i) {
    const UpdateTarget& target = of_replica(all_, 0).targets[i];
    if (!collect_sources(i)) return;
    const Tensor param = target.variable.impl().component(0).cpu();
    std::vector<Tensor> slots;
    for (const auto& slot : target.slots) slots.push_back(slot.impl().component(0).cpu());
    param_ = &param;
    slots_.clear();
    for (const Tensor& slot : slots) slots_.push_back(&slot);
    for (int64_t begin = 0; begin < param.numel(); begin += kBlock) {
      update_block(begin, std::min(kBlock, param.numel() - begin));
    }
    write_all(target.variable.impl(), param);
    for (size_t s = 0; s < slots.size(); ++s) write_all(target.slots[s].impl(), slots[s]);
  }

 private:
  // Elements at a time: the sum of a block stays in the first-level cache until it is applied.
  static constexpr int64_t kBlock = 2048;

  // The gradients of target `i` that replicas have, in replica order. False where none has one.
  bool collect_sources(size_t i) {
    sources_.clear();
    for (size_t r = 0; r < all_.size(); ++r) {
      const Tensor& gradient = of_replica(all_, r).gradients[i];
      if (!gradient.defined()) continue;
      sources_.push_back(static_cast<const char*>(gradient.data_ptr()));
      dtype_ = gradient.scalar_type();
      item_size_ = static_cast<int64_t>(gradient.element_size());
    }
    return !sources_.empty();
  }

  char* at(const Tensor& tensor, int64_t begin) const {
    return static_cast<char*>(tensor.data_ptr()) + begin * item_size_;
  }

  const void* summed_gradient(int64_t begin, int64_t count) {
    if (sources_.size() == 1) return sources_[0] + begin * item_size_;
    c10::SmallVector<const void*, 8> parts;
    for (const char* source : sources_) parts.push_back(source + begin * item_size_);
    collective::add_slices(sum_, parts, count, dtype_);
    return sum_;
  }

  void update_block(int64_t begin, int64_t count) {
    void* slots[optim::kMaxSlots];
    for (size_t s = 0; s < slots_.size(); ++s) slots[s] = at(*slots_[s], begin);
    rule_.update(scalars_, {.param = at(*param_, begin),
                            .slots = slots,
                            .gradient = summed_gradient(begin, count),
                            .size = count,
                            .dtype = dtype_});
  }

  void copy_to_other_components(const VariableImpl& variable, int64_t begin, int64_t count) {
    for (const size_t component : variable.distinct_components()) {
      if (component == 0) continue;
      std::memcpy(at(variable.component(component), begin), at(variable.component(0), begin),
                  static_cast<size_t>(count * item_size_));
    }
  }

  static void write_all(const VariableImpl& variable, const Tensor& value) {
    for (const size_t component : variable.distinct_components()) {
      variable.component(component).copy_(value);
    }
  }

  Contributions all_;
  const optim::UpdateRule& rule_;
  const optim::StepScalars& scalars_;
  c10::SmallVector<const char*, 8> sources_;
  const Tensor* param_ = nullptr;
  c10::SmallVector<const Tensor*, optim::kMaxSlots> slots_;
  DType dtype_ = DType::Float;
  int64_t item_size_ = 0;
  alignas(double) char sum_[kBlock * sizeof(double)];
};

bool on_cpu(const UpdateTarget& target) {
  const VariableImpl& variable = target.variable.impl();
  const auto& components = variable.distinct_components();
  return std::all_of(components.begin(), components.end(),
                     [&](size_t i) { return variable.component(i).is_cpu(); });
}

// Walks the part of all elements of all targets that belongs to member `rank`.
void update_own_slice(SlicePass& pass, std::span<const UpdateTarget> targets, int rank, int count) {
  int64_t total = 0;
  for (const UpdateTarget& target : targets) total += target.variable.impl().component(0).numel();
  const SliceRange mine = collective::slice_of(total, rank, count);
  int64_t offset = 0;
  for (size_t i = 0; i < targets.size(); ++i) {
    const int64_t size = targets[i].variable.impl().component(0).numel();
    const SliceRange local{std::max<int64_t>(mine.begin - offset, 0),
                           std::min<int64_t>(mine.end - offset, size)};
    if (!on_cpu(targets[i])) {
      if (rank == 0) pass.update_on_device(i);
    } else if (local.begin < local.end) {
      pass.update(i, local);
    }
    offset += size;
  }
}

}  // namespace

void reduce_and_update(ReplicaContext& context, std::span<const Tensor> gradients,
                       std::span<const UpdateTarget> targets, const optim::UpdateRule& rule,
                       const UpdateOptions& options) {
  Contribution mine = prepare(context, gradients, targets);
  const optim::StepScalars scalars = rule.prepare(options.learning_rate, options.iteration);
  const auto work = [&](Contributions all) {
    SlicePass pass(all, rule, scalars, options.aggregate_gradients);
    update_own_slice(pass, targets, context.local_replica_id(), static_cast<int>(all.size()));
  };
  void* payload = &mine;
  if (context.group() == nullptr) {
    work(Contributions(&payload, 1));
  } else {
    context.group()->share(context.local_replica_id(), "apply_gradients", payload,
                           check_same_targets, work);
  }
  const auto replica = static_cast<size_t>(context.local_replica_id());
  for (const UpdateTarget& target : targets) {
    const VariableImpl& variable = target.variable.impl();
    variable.mark_written(std::min(replica, variable.num_components() - 1));
  }
}

}  // namespace cohort::internal

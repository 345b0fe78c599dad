#include "cohort/distribute/reduce_and_update.h"

#include <algorithm>
#include <cstring>

#include "cohort/collective/slices.h"
#include "cohort/collective/thread_group.h"
#include "cohort/core/intra_op_parallel.h"
#include "cohort/core/intra_op_threads.h"
#include "cohort/core/phase.h"
#include "cohort/distribute/gradient_packs.h"
#include "cohort/distribute/local_variable.h"
#include "cohort/distribute/sparse_rows.h"
#include "cohort/distribute/strategy_core.h"

namespace cohort::internal {
namespace {

using collective::SliceRange;
using distribute::ReplicaContext;

// What one replica brings to the pass.
struct Contribution {
  int replica = 0;
  std::span<const UpdateTarget> targets;
  // On the CPU: dense and contiguous, or sparse rows; undefined where none.
  c10::SmallVector<Tensor, 16> gradients;
  // Of the sparse ones among them, by place; empty where all are dense.
  std::vector<SparseRows> sparse;
};

using Contributions = std::span<void* const>;

Contribution& of_replica(Contributions all, size_t replica) {
  return *static_cast<Contribution*>(all[replica]);
}

// Elements at a time: the sum of a block stays in the first-level cache until it is applied.
constexpr int64_t kBlock = 2048;

bool on_cpu(const LocalVariable& variable) {
  const auto& components = variable.distinct_components();
  return std::all_of(components.begin(), components.end(),
                     [&](size_t i) { return variable.component(i).is_cpu(); });
}

Tensor usable(const Tensor& gradient, const VariableImpl& variable, int replica) {
  if (!gradient.defined()) return gradient;
  if (gradient.sizes() != variable.shape() || gradient.scalar_type() != variable.dtype()) {
    throw InvalidArgumentError(str("the gradient of variable '", variable.options().name,
                                   "' on replica ", replica, " is ", describe(gradient),
                                   ", but the variable is ", dtype_name(variable.dtype()), " ",
                                   shape_str(variable.shape())));
  }
  const Tensor detached = gradient.detach();
  if (detached.layout() == at::kStrided) return detached.to(at::kCPU).contiguous();
  if (on_cpu(variable.local()) && SparseRows::are_in(detached, kBlock)) return detached;
  return detached.coalesce().to_dense().to(at::kCPU);
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
    const Tensor& gradient =
        mine.gradients.emplace_back(usable(gradients[i], targets[i].variable.impl(), mine.replica));
    if (!gradient.defined() || gradient.layout() == at::kStrided) continue;
    mine.sparse.resize(targets.size());
    mine.sparse[i] = SparseRows(gradient);
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

// Makes the gradients of a target dense where not all replicas have sparse ones.
void densify_where_mixed(Contributions all) {
  const size_t count = of_replica(all, 0).gradients.size();
  for (size_t i = 0; i < count; ++i) {
    const auto is_dense = [&](void* one) {
      const Tensor& gradient = static_cast<Contribution*>(one)->gradients[i];
      return gradient.defined() && gradient.layout() == at::kStrided;
    };
    if (std::none_of(all.begin(), all.end(), is_dense)) continue;
    for (size_t r = 0; r < all.size(); ++r) {
      Tensor& gradient = of_replica(all, r).gradients[i];
      if (gradient.defined() && gradient.layout() != at::kStrided) gradient = gradient.to_dense();
    }
  }
}

// One thread's part of the pass.
class SlicePass {
 public:
  SlicePass(Contributions all, const optim::UpdateRule& rule, const optim::StepScalars& scalars,
            const UpdateOptions& options)
      : all_(all.first(options.aggregate_gradients ? all.size() : 1)),
        rule_(rule),
        scalars_(scalars),
        packs_(options.packs) {}

  // Updates elements [range) of target `i`, whose components are on the CPU.
  void update(size_t i, SliceRange range) {
    const UpdateTarget& target = of_replica(all_, 0).targets[i];
    if (!collect_sources(i)) return;
    use_components(target);
    if (!sparse_rows_.empty()) return update_sparse(target, range);
    for (int64_t begin = range.begin; begin < range.end; begin += kBlock) {
      const int64_t count = std::min(kBlock, range.end - begin);
      update_block(begin, count);
      copy_to_others(target, begin, count);
    }
  }

  // Updates the whole of target `i` on another kind of device, by way of the host: rules work on
  // the host's memory. Correct, not fast.
  void update_on_device(size_t i) {
    const UpdateTarget& target = of_replica(all_, 0).targets[i];
    if (!collect_sources(i)) return;
    const Tensor param = target.variable.impl().local().component(0).cpu();
    std::vector<Tensor> slots;
    for (const auto& slot : target.slots) slots.push_back(slot.impl().local().component(0).cpu());
    param_ = &param;
    slots_.clear();
    for (const Tensor& slot : slots) slots_.push_back(&slot);
    for (int64_t begin = 0; begin < param.numel(); begin += kBlock) {
      update_block(begin, std::min(kBlock, param.numel() - begin));
    }
    write_all(target.variable.impl().local(), param);
    for (size_t s = 0; s < slots.size(); ++s) write_all(target.slots[s].impl().local(), slots[s]);
  }

 private:
  void use_components(const UpdateTarget& target) {
    param_ = &target.variable.impl().local().component(0);
    slots_.clear();
    for (const auto& slot : target.slots) slots_.push_back(&slot.impl().local().component(0));
  }

  // The gradients of target `i` that replicas have, in replica order. False where none has one.
  bool collect_sources(size_t i) {
    sources_.clear();
    sparse_rows_.clear();
    if (packs_ != nullptr && packs_->reduced(i)) {
      const Tensor& sum = packs_->sum(i);
      sources_.push_back(static_cast<const char*>(sum.data_ptr()));
      dtype_ = sum.scalar_type();
      item_size_ = static_cast<int64_t>(sum.element_size());
      return true;
    }
    for (size_t r = 0; r < all_.size(); ++r) {
      const Tensor& gradient = of_replica(all_, r).gradients[i];
      if (!gradient.defined()) continue;
      if (gradient.layout() == at::kStrided) {
        sources_.push_back(static_cast<const char*>(gradient.data_ptr()));
      } else {
        sparse_rows_.add(of_replica(all_, r).sparse[i]);
      }
      dtype_ = gradient.scalar_type();
      item_size_ = static_cast<int64_t>(gradient.element_size());
    }
    return !sources_.empty() || !sparse_rows_.empty();
  }

  // Updates the rows that begin in elements [range).
  void update_sparse(const UpdateTarget& target, SliceRange range) {
    const int64_t row_size = param_->numel() / param_->size(0);
    const auto first_row_from = [&](int64_t element) {
      return (element + row_size - 1) / row_size;
    };
    const int64_t end = first_row_from(range.end);
    int64_t begin = first_row_from(range.begin);
    sparse_rows_.skip_to(begin);
    if (rule_.zero_gradient_is_no_op()) return update_given_rows(target, end, row_size);
    int64_t ids[kRowsAtOnce];
    const int64_t capacity = std::min(kRowsAtOnce, kBlock / row_size);
    while (begin < end) {
      const int64_t count = add_up_rows(end, row_size, {ids, static_cast<size_t>(capacity)});
      const int64_t next = count == capacity ? ids[count - 1] + 1 : end;
      for (int64_t k = 0; k < count; ++k) ids[k] -= begin;
      update_rows(target, begin, next, row_size, {ids, static_cast<size_t>(count)});
      begin = next;
    }
  }

  // Adds up the next rows before `end`, as many as `ids` has places for, into sum_; returns how
  // many.
  int64_t add_up_rows(int64_t end, int64_t row_size, std::span<int64_t> ids) {
    const ScopedPhase phase(profiler::Phase::kReduce);
    char* sum = sum_;
    int64_t count = 0;
    for (int64_t& id : ids) {
      id = sparse_rows_.next_id(end);
      if (id == end) break;
      const char* found = sparse_rows_.take(id, row_size, dtype_, sum, scratch_);
      if (found != sum) std::memcpy(sum, found, static_cast<size_t>(row_size * item_size_));
      sum += row_size * item_size_;
      ++count;
    }
    return count;
  }

  // Updates the rows before `end` that have a gradient, one by one: the others stay as they are.
  void update_given_rows(const UpdateTarget& target, int64_t end, int64_t row_size) {
    for (int64_t id = sparse_rows_.next_id(end); id != end; id = sparse_rows_.next_id(end)) {
      sparse_rows_.prefetch(at(*param_, 0), row_size * item_size_);
      const char* gradient = sparse_rows_.take(id, row_size, dtype_, sum_, scratch_);
      apply_rule(id * row_size, row_size, gradient);
      copy_to_others(target, id * row_size, row_size);
    }
  }

  // Rows [begin, end), of which begin + ids[k] has row k of sum_ as its gradient, the others zeros.
  void update_rows(const UpdateTarget& target, int64_t begin, int64_t end, int64_t row_size,
                   std::span<const int64_t> ids) {
    void* slots[optim::kMaxSlots];
    for (size_t s = 0; s < slots_.size(); ++s) slots[s] = at(*slots_[s], begin * row_size);
    optim::update_rows(rule_, scalars_,
                       {.param = at(*param_, begin * row_size),
                        .slots = slots,
                        .num_rows = end - begin,
                        .row_size = row_size,
                        .gradient = sum_,
                        .row_ids = ids.data(),
                        .num_row_ids = static_cast<int64_t>(ids.size()),
                        .dtype = dtype_});
    copy_to_others(target, begin * row_size, (end - begin) * row_size);
  }

  char* at(const Tensor& tensor, int64_t begin) const {
    return static_cast<char*>(tensor.data_ptr()) + begin * item_size_;
  }

  const void* summed_gradient(int64_t begin, int64_t count) {
    if (sources_.size() == 1) return sources_[0] + begin * item_size_;
    c10::SmallVector<const void*, 8> parts;
    for (const char* source : sources_) parts.push_back(source + begin * item_size_);
    const ScopedPhase phase(profiler::Phase::kReduce);
    collective::add_slices(sum_, parts, count, dtype_);
    return sum_;
  }

  void update_block(int64_t begin, int64_t count) {
    apply_rule(begin, count, summed_gradient(begin, count));
  }

  void apply_rule(int64_t begin, int64_t count, const void* gradient) {
    void* slots[optim::kMaxSlots];
    for (size_t s = 0; s < slots_.size(); ++s) slots[s] = at(*slots_[s], begin);
    rule_.update(scalars_, {.param = at(*param_, begin),
                            .slots = slots,
                            .gradient = gradient,
                            .size = count,
                            .dtype = dtype_});
  }

  void copy_to_others(const UpdateTarget& target, int64_t begin, int64_t count) {
    copy_to_other_components(target.variable.impl().local(), begin, count);
    for (const auto& slot : target.slots) {
      copy_to_other_components(slot.impl().local(), begin, count);
    }
  }

  void copy_to_other_components(const LocalVariable& variable, int64_t begin, int64_t count) {
    for (const size_t component : variable.distinct_components()) {
      if (component == 0) continue;
      std::memcpy(at(variable.component(component), begin), at(variable.component(0), begin),
                  static_cast<size_t>(count * item_size_));
    }
  }

  static void write_all(const LocalVariable& variable, const Tensor& value) {
    for (const size_t component : variable.distinct_components()) {
      variable.component(component).copy_(value);
    }
  }

  Contributions all_;
  const optim::UpdateRule& rule_;
  const optim::StepScalars& scalars_;
  const GradientPacks* packs_;
  static constexpr int64_t kRowsAtOnce = 256;

  c10::SmallVector<const char*, 8> sources_;
  SparseRowSum sparse_rows_;  // in place of sources_
  const Tensor* param_ = nullptr;
  c10::SmallVector<const Tensor*, optim::kMaxSlots> slots_;
  DType dtype_ = DType::Float;
  int64_t item_size_ = 0;
  alignas(double) char sum_[kBlock * sizeof(double)];
  alignas(double) char scratch_[kBlock * sizeof(double)];
};

// Which thread of all that walk a pass: `thread` of `threads` of member `rank` of `members`.
struct Walker {
  int rank;
  int members;
  int thread;
  int threads;

  // Its part of so many elements.
  SliceRange slice_of(int64_t total) const {
    const SliceRange members_part = collective::slice_of(total, rank, members);
    SliceRange own = collective::slice_of(members_part.end - members_part.begin, thread, threads);
    own.begin += members_part.begin;
    own.end += members_part.begin;
    return own;
  }
  bool is_first() const { return rank == 0 && thread == 0; }
};

// Walks the walker's part of all elements of all targets.
void update_own_slice(SlicePass& pass, std::span<const UpdateTarget> targets,
                      const Walker& walker) {
  int64_t total = 0;
  for (const UpdateTarget& target : targets) {
    total += target.variable.impl().local().component(0).numel();
  }
  const SliceRange mine = walker.slice_of(total);
  int64_t offset = 0;
  for (size_t i = 0; i < targets.size(); ++i) {
    const int64_t size = targets[i].variable.impl().local().component(0).numel();
    const SliceRange local{std::max<int64_t>(mine.begin - offset, 0),
                           std::min<int64_t>(mine.end - offset, size)};
    if (!on_cpu(targets[i].variable.impl().local())) {
      if (walker.is_first()) pass.update_on_device(i);
    } else if (local.begin < local.end) {
      pass.update(i, local);
    }
    offset += size;
  }
}

// How many of the calling thread's intra-op threads the walk over its part is worth.
int threads_for(const Contribution& mine, const optim::UpdateRule& rule, size_t members) {
  constexpr int64_t kLeast = 16 << 10;  // elements for each
  int64_t elements = 0;
  for (size_t i = 0; i < mine.targets.size(); ++i) {
    const Tensor& gradient = mine.gradients[i];
    if (!gradient.defined()) continue;
    const bool rows_alone = gradient.layout() != at::kStrided && rule.zero_gradient_is_no_op();
    elements += rows_alone ? gradient._values().numel() : gradient.numel();
  }
  const int64_t own = elements / static_cast<int64_t>(members);
  return static_cast<int>(std::clamp<int64_t>(own / kLeast, 1, intra_op_threads()));
}

}  // namespace

Tensor usable_gradient(const Tensor& gradient, const distribute::Variable& variable, int replica) {
  return usable(gradient, variable.impl(), replica);
}

void reduce_and_update(ReplicaContext& context, std::span<const Tensor> gradients,
                       std::span<const UpdateTarget> targets, const optim::UpdateRule& rule,
                       const UpdateOptions& options) {
  Contribution mine = prepare(context, gradients, targets);
  const optim::StepScalars scalars = rule.prepare(options.learning_rate, options.iteration);
  const auto work = [&](Contributions all) {
    const ScopedPhase phase(profiler::Phase::kUpdate);
    const int threads = threads_for(mine, rule, all.size());
    intra_op_parallel_for(0, threads, 1, [&](int64_t first, int64_t last) {
      for (int64_t thread = first; thread < last; ++thread) {
        SlicePass pass(all, rule, scalars, options);
        update_own_slice(pass, targets,
                         {.rank = context.local_replica_id(),
                          .members = static_cast<int>(all.size()),
                          .thread = static_cast<int>(thread),
                          .threads = threads});
      }
    });
  };
  void* payload = &mine;
  if (context.group() == nullptr) {
    work(Contributions(&payload, 1));
  } else {
    context.group()->share(
        context.local_replica_id(), "apply_gradients", payload,
        [](Contributions all) {
          check_same_targets(all);
          densify_where_mixed(all);
        },
        work);
  }
  const auto replica = static_cast<size_t>(context.local_replica_id());
  for (const UpdateTarget& target : targets) {
    const LocalVariable& variable = target.variable.impl().local();
    variable.mark_written(std::min(replica, variable.num_components() - 1));
  }
}

}  // namespace cohort::internal

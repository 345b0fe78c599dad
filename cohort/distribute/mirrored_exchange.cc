#include "cohort/distribute/mirrored_exchange.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cmath>

#include "cohort/collective/task_collectives.h"
#include "cohort/core/intra_op_parallel.h"
#include "cohort/core/intra_op_threads.h"
#include "cohort/core/phase.h"
#include "cohort/distribute/local_variable.h"
#include "cohort/distribute/slice_pass.h"

namespace cohort::internal {

using collective::SliceRange;
using distribute::ReplicaContext;

namespace {

// So much of the gradients is added up at a time: the caches of a core hold it for all replicas.
constexpr int64_t kBytesPerPack = 256 << 10;
constexpr const char* kCall = "apply_gradients";

std::vector<distribute::Variable> variables_of(const std::vector<UpdateTarget>& targets) {
  std::vector<distribute::Variable> variables;
  for (const UpdateTarget& target : targets) variables.push_back(target.variable);
  return variables;
}

size_t local_id(const ReplicaContext& replica) {
  return static_cast<size_t>(replica.local_replica_id());
}

int64_t size_of(const UpdateTarget& target) {
  return target.variable.impl().local().component(0).numel();
}

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

// Calls visit(i, elements of target i) for the walker's part of all elements of all targets.
void walk(std::span<const UpdateTarget> targets, const Walker& walker,
          FunctionRef<void(size_t, SliceRange)> visit) {
  int64_t total = 0;
  for (const UpdateTarget& target : targets) total += size_of(target);
  const SliceRange mine = walker.slice_of(total);
  int64_t offset = 0;
  for (size_t i = 0; i < targets.size(); ++i) {
    const int64_t size = size_of(targets[i]);
    visit(i,
          {std::max<int64_t>(mine.begin - offset, 0), std::min<int64_t>(mine.end - offset, size)});
    offset += size;
  }
}

// Elements that the update of the replica's own gradients touches.
int64_t elements_of(const Contribution& mine, const optim::UpdateRule& rule) {
  int64_t elements = 0;
  for (const Tensor& gradient : mine.gradients) {
    if (!gradient.defined()) continue;
    const bool rows_alone = gradient.layout() != at::kStrided && rule.zero_gradient_is_no_op();
    elements += rows_alone ? gradient._values().numel() : gradient.numel();
  }
  return elements;
}

// How many of the calling thread's intra-op threads a walk over its part is worth.
int threads_for(int64_t elements, size_t members) {
  constexpr int64_t kLeast = 16 << 10;  // elements for each
  const int64_t own = elements / static_cast<int64_t>(members);
  return static_cast<int>(std::clamp<int64_t>(own / kLeast, 1, intra_op_threads()));
}

void check_same_targets(Contributions all) {
  const Contribution& first = of_replica(all, 0);
  for (size_t r = 1; r < all.size(); ++r) {
    const Contribution& other = of_replica(all, r);
    check_same_targets(*first.exchange, first.replica, *other.exchange, other.replica);
  }
}

// Where the gradients are equal on all replicas, those of the first stand for all.
Contributions used(Contributions all, const UpdateStep& step) {
  return all.first(step.aggregate_gradients ? all.size() : 1);
}

double sum_of_squares(const Tensor& tensor) {
  const auto add_up = [&](auto zero) {
    const auto* values = tensor.data_ptr<decltype(zero)>();
    double sum = 0;
    for (int64_t i = 0; i < tensor.numel(); ++i) sum += double{values[i]} * double{values[i]};
    return sum;
  };
  return tensor.scalar_type() == float64 ? add_up(double{}) : add_up(float{});
}

}  // namespace

MirroredExchange::MirroredExchange(std::vector<UpdateTarget> targets, collective::SyncGroup& group)
    : GradientExchange(std::move(targets), static_cast<size_t>(group.view()->num_local_replicas())),
      local_replicas_(static_cast<size_t>(group.view()->num_local_replicas())),
      packs_(variables_of(this->targets()), local_replicas_, kBytesPerPack),
      arrival_(local_replicas_, Arrival::kAtOnce) {
  for (const UpdateTarget& target : this->targets()) target.variable.impl().local().check_task();
}

void MirroredExchange::begin(ReplicaContext& replica, Arrival arrival) {
  if (!targets().empty()) targets()[0].variable.impl().local().check_task();
  arrival_[local_id(replica)] = arrival;
  if (arrival == Arrival::kAtOnce) return packs_.forget(local_id(replica));
  Contribution mine(*this, replica.replica_id_in_sync_group());
  replica.group().meet(replica.local_replica_id(), "minimize", &mine, [this](Contributions all) {
    check_same_targets(all);
    packs_.begin();
  });
}

void MirroredExchange::bring(ReplicaContext& replica, size_t target, const Tensor& gradient) {
  if (!gradient.defined()) return;
  packs_.bring(
      local_id(replica), target,
      usable_gradient(gradient, targets()[target].variable, replica.replica_id_in_sync_group()));
}

bool MirroredExchange::has(const ReplicaContext& replica, size_t target) const {
  return packs_.gradient(local_id(replica), target).defined();
}

const GradientPacks* MirroredExchange::packs_of(const ReplicaContext& replica) const {
  return arrival_[local_id(replica)] == Arrival::kOneByOne ? &packs_ : nullptr;
}

UpdateResult MirroredExchange::finish(ReplicaContext& replica, const UpdateStep& step) {
  const size_t own = local_id(replica);
  struct Forget {  // also where the update fails: gradients are large
    GradientPacks& packs;
    size_t replica;
    ~Forget() { packs.forget(replica); }
  } forget{packs_, own};
  if (packs_of(replica) != nullptr) packs_.reduce_complete();
  Contribution mine(*this, replica.replica_id_in_sync_group(), packs_.gradients(own));
  const optim::StepScalars scalars = step.rule.prepare(step.learning_rate, step.iteration);
  const bool crosses_tasks = replica.group().spans_tasks() && step.aggregate_gradients;
  UpdateResult result;
  if (crosses_tasks || step.transforms_sums()) {
    result = update_from_sums(replica, mine, step, scalars);
  } else {
    update_in_one_pass(replica, mine, step, scalars);
  }
  if (!result.updated) return result;
  for (const UpdateTarget& target : targets()) {
    const LocalVariable& variable = target.variable.impl().local();
    variable.mark_written(std::min(own, variable.num_components() - 1));
  }
  return result;
}

void MirroredExchange::update_in_one_pass(ReplicaContext& replica, Contribution& mine,
                                          const UpdateStep& step,
                                          const optim::StepScalars& scalars) {
  replica.group().share(
      replica.local_replica_id(), kCall, &mine,
      [](Contributions all) {
        check_same_targets(all);
        densify(all, /*always=*/false);
      },
      [&](Contributions all) {
        update_slices(replica, {.replicas = used(all, step), .packs = packs_of(replica)}, step,
                      scalars, elements_of(mine, step.rule));
      });
}

void MirroredExchange::update_slices(const ReplicaContext& replica, const GradientSources& sources,
                                     const UpdateStep& step, const optim::StepScalars& scalars,
                                     int64_t elements) {
  const ScopedPhase phase(profiler::Phase::kUpdate);
  const int threads = threads_for(elements, local_replicas_);
  intra_op_parallel_for(0, threads, 1, [&](int64_t first, int64_t last) {
    for (int64_t thread = first; thread < last; ++thread) {
      SlicePass pass(targets(), sources);
      pass.use(step.rule, scalars);
      const Walker walker{.rank = replica.local_replica_id(),
                          .members = static_cast<int>(local_replicas_),
                          .thread = static_cast<int>(thread),
                          .threads = threads};
      walk(targets(), walker, [&](size_t i, SliceRange range) {
        if (!on_host(targets()[i].variable.impl().local())) {
          if (walker.is_first()) pass.update_on_device(i);
        } else if (range.begin < range.end) {
          pass.update(i, range);
        }
      });
    }
  });
}

UpdateResult MirroredExchange::update_from_sums(ReplicaContext& replica, Contribution& mine,
                                                const UpdateStep& step,
                                                const optim::StepScalars& scalars) {
  collective::SyncGroup& group = replica.group();
  const int own = replica.local_replica_id();
  group.share(
      own, kCall, &mine,
      [&](Contributions all) {
        check_same_targets(all);
        densify(all, /*always=*/true);
        prepare_sums(group, used(all, step));
      },
      [&](Contributions all) {
        const ScopedPhase phase(profiler::Phase::kReduce);
        SlicePass pass(targets(), {.replicas = used(all, step), .packs = packs_of(replica)});
        const Walker walker{own, static_cast<int>(local_replicas_), 0, 1};
        walk(targets(), walker, [&](size_t i, SliceRange range) {
          if (range.begin < range.end) pass.add_up(i, range, sums_.tensors[i]);
        });
      });
  group.meet(own, kCall, &mine, [&](Contributions) {
    if (step.aggregate_gradients) sum_over_tasks(group);
    for (size_t i = 0; i < targets().size(); ++i) {
      sums_.used[i] = sums_.present[i] > 0 ? sums_.tensors[i] : Tensor();
    }
    transform_sums(step);
  });
  const UpdateResult result = sums_.result;
  group.share(
      own, kCall, &mine, [](Contributions) {},
      [&](Contributions all) {
        if (!result.updated) return;
        update_slices(replica, {.replicas = all, .sums = sums_.used, .scale = sums_.scale}, step,
                      scalars, elements_of(mine, step.rule));
      });
  return result;
}

void MirroredExchange::prepare_sums(collective::SyncGroup& group, Contributions all) {
  const size_t count = targets().size();
  if (sums_.tensors.empty()) {
    sums_.used.resize(count);
    for (const UpdateTarget& target : targets()) {
      const auto dtype = target.variable.dtype();
      const auto bytes = size_of(target) * static_cast<int64_t>(c10::elementSize(dtype));
      sums_.tensors.push_back(at::from_blob(group.between().buffer(bytes).data,
                                            target.variable.shape(), at::dtype(dtype)));
    }
  }
  sums_.present.assign(count, 0);
  for (size_t r = 0; r < all.size(); ++r) {
    const auto gradients = of_replica(all, r).gradients;
    for (size_t i = 0; i < count; ++i) sums_.present[i] += gradients[i].defined() ? 1 : 0;
  }
}

void MirroredExchange::sum_over_tasks(collective::SyncGroup& group) {
  if (!group.spans_tasks()) return;
  const ScopedPhase phase(profiler::Phase::kReduce);
  const auto count = static_cast<int64_t>(sums_.present.size());
  collective::all_reduce(group.between(), {sums_.present.data(), count, int32},
                         {.name = "which gradients there are", .timeout = group.timeout()});
  for (size_t i = 0; i < targets().size(); ++i) {
    if (sums_.present[i] == 0) continue;
    collective::sum_over_tasks(group, sums_.tensors[i], targets()[i].variable.name());
  }
}

// By the norm of all sums together, so that their direction stays. Squares are added up in one
// order, whatever the number of replicas and tasks.
void MirroredExchange::transform_sums(const UpdateStep& step) {
  sums_.scale = 1;
  sums_.result = {};
  if (!step.transforms_sums()) return;
  double squares = 0;
  for (const Tensor& sum : sums_.used) {
    if (sum.defined()) squares += sum_of_squares(sum);
  }
  const double norm = std::sqrt(squares);
  sums_.result.global_norm = norm;
  if (!std::isfinite(norm) && step.skip_not_finite) sums_.result.updated = false;
  if (step.global_clipnorm > 0 && norm > step.global_clipnorm) {
    sums_.scale = step.global_clipnorm / norm;
  }
}

}  // namespace cohort::internal

#include "cohort/distribute/gradients/mirrored_exchange.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <cmath>

#include "cohort/core/cpu/intra_op_parallel.h"
#include "cohort/core/cpu/intra_op_threads.h"
#include "cohort/core/profiler/phase.h"
#include "cohort/distribute/gradients/constrain_targets.h"
#include "cohort/distribute/gradients/device_clip.h"
#include "cohort/distribute/gradients/device_pass.h"
#include "cohort/distribute/gradients/whole_variables.h"
#include "cohort/distribute/variables/local_variable.h"

namespace cohort::internal {

using collective::SliceRange;

namespace {

constexpr const char* kCall = "apply_gradients";
constexpr int64_t kElementsKeptAtOnce = 8 << 10;

std::vector<distribute::Variable> variables_of(const std::vector<UpdateTarget>& targets) {
  std::vector<distribute::Variable> variables;
  for (const UpdateTarget& target : targets) variables.push_back(target.variable);
  return variables;
}

size_t local_id(const Replica& replica) { return static_cast<size_t>(replica.local_replica_id()); }

void check_same_targets(Contributions all) {
  const Contribution& first = of_replica(all, 0);
  for (size_t r = 1; r < all.size(); ++r) {
    const Contribution& other = of_replica(all, r);
    check_same_targets(*first.exchange, first.replica, *other.exchange, other.replica);
  }
}

// The gradients that are used: those of the first replica stand for all if they are equal on all.
Contributions used(Contributions all, const UpdateStep& step) {
  return all.first(step.aggregate_gradients ? all.size() : 1);
}

template <class Number>
double squares_of(std::span<Number> values) {
  double sum = 0;
  for (const Number value : values) sum += double{value} * double{value};
  return sum;
}

// Calls visit with the numbers of all sums, one after another in the order of their elements.
void visit_numbers(DType dtype, void* data, size_t bytes, auto visit) {
  if (dtype == float64) {
    visit(std::span(static_cast<double*>(data), bytes / sizeof(double)));
  } else {
    visit(std::span(static_cast<float*>(data), bytes / sizeof(float)));
  }
}

}  // namespace

MirroredExchange::MirroredExchange(std::vector<UpdateTarget> targets,
                                   const std::shared_ptr<collective::SyncGroup>& group,
                                   int64_t bytes_per_pack)
    : GradientExchange(std::move(targets),
                       static_cast<size_t>(group->view()->num_local_replicas())),
      group_(group),
      local_replicas_(static_cast<size_t>(group->view()->num_local_replicas())),
      gradients_(this->targets().size(), local_replicas_),
      arrival_(local_replicas_, Arrival::kAtOnce),
      rows_(local_replicas_, std::vector<SparseRows>(this->targets().size())),
      division_(group->view()->division) {
  for (const UpdateTarget& target : this->targets()) {
    target.variable.impl().local().check_task();
    (on_host(target.variable.impl().local()) ? any_on_host_ : any_on_device_) = true;
    any_constraint_ = any_constraint_ || target.variable.impl().options().constraint;
  }
  if (group->spans_tasks()) {
    added_up_ = AddedUp::kOnHosts;
    for (const UpdateTarget& target : this->targets()) {
      if (is_added_up_on_device(target.variable, *group)) added_up_ = AddedUp::kOnDevices;
    }
    between_ = std::make_unique<TaskSums>(variables_of(this->targets()), gradients_, *group,
                                          bytes_per_pack);
  }
}

bool MirroredExchange::is_on_host(size_t i) const {
  return on_host(targets()[i].variable.impl().local());
}

void MirroredExchange::begin(Replica& replica, Arrival arrival) {
  if (!targets().empty()) targets()[0].variable.impl().local().check_task();
  arrival_[local_id(replica)] = arrival;
  gradients_.forget(local_id(replica));
  if (arrival == Arrival::kAtOnce) return;
  if (works_for_all(replica)) {  // the first replica has come before the others
    if (local_id(replica) == 0 && between_ != nullptr) between_->begin();
    return;
  }
  Contribution mine(*this, replica.replica_id_in_sync_group());
  replica.group().meet(replica.local_replica_id(), "minimize", &mine, [this](Contributions all) {
    check_same_targets(all);
    if (between_ != nullptr) between_->begin();
  });
}

void MirroredExchange::bring(Replica& replica, size_t target, const Tensor& gradient) {
  if (!gradient.defined()) return;
  gradients_.bring(local_id(replica), target,
                   usable_gradient(gradient, targets()[target].variable,
                                   replica.replica_id_in_sync_group(), added_up_));
  if (between_ != nullptr && arrival_[local_id(replica)] == Arrival::kOneByOne) {
    between_->arrived(target);
  }
}

bool MirroredExchange::has(const Replica& replica, size_t target) const {
  return gradients_.gradient(local_id(replica), target).defined();
}

UpdateResult MirroredExchange::finish(Replica& replica, const UpdateStep& step) {
  const size_t own = local_id(replica);
  struct Forget {  // also where the update fails: gradients are large
    MirroredExchange& exchange;
    size_t replica;
    ~Forget() {
      exchange.gradients_.forget(replica);
      for (SparseRows& rows : exchange.rows_[replica]) rows.clear();
    }
  } forget{*this, own};
  const bool one_by_one = arrival_[own] == Arrival::kOneByOne;
  if (between_ != nullptr && one_by_one && !step.aggregate_gradients) {
    throw InvalidArgumentError(
        "gradients that arrive one by one are already on their way to the other tasks; pass them "
        "at "
        "once where they are not to be aggregated");
  }
  Contribution mine(*this, replica.replica_id_in_sync_group(), gradients_.of(own), rows_[own]);
  const optim::StepScalars scalars = step.rule.prepare(step.learning_rate, step.iteration);
  UpdateResult result;
  if (crosses_tasks(step) || step.transforms_sums()) {
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

// What a pass adds up where all replicas whose gradients are used are in this task.
GradientSources MirroredExchange::sources_of(Contributions replicas) const {
  const bool in_tree = division_ != nullptr && replicas.size() > 1;
  return {.replicas = replicas, .additions = in_tree ? &division_->additions_within(0) : nullptr};
}

void MirroredExchange::update_in_one_pass(Replica& replica, Contribution& mine,
                                          const UpdateStep& step,
                                          const optim::StepScalars& scalars) {
  const int own = replica.local_replica_id();
  const auto prepare = [&](Contributions all) {
    check_same_targets(all);
    densify(all, /*always=*/false);
    prepare_to_keep(replica, step, /*from_sums=*/false);
  };
  const auto update = [&](Contributions all, const WorkPart& part) {
    update_slices(part, sources_of(used(all, step)), step, scalars, elements_of(mine, step.rule));
  };
  if (works_for_all(replica)) {
    replica.group().meet(own, kCall, &mine, [&](Contributions all) {
      prepare(all);
      update(all, kWholeWork);
    });
  } else {
    replica.group().share(own, kCall, &mine, prepare,
                          [&](Contributions all) { update(all, part_of(replica)); });
  }
  constrain(replica, mine,
            [&](Contributions all) { return GradientSources{.replicas = used(all, step)}; });
}

void MirroredExchange::update_slices(const WorkPart& part, const GradientSources& sources,
                                     const UpdateStep& step, const optim::StepScalars& scalars,
                                     int64_t elements) {
  const ScopedPhase phase(profiler::Phase::kUpdate);
  if (any_on_device_) {
    DevicePass(targets(), sources).update(static_cast<size_t>(part.number), step, scalars);
  }
  if (!any_on_host_) return;
  if (step.rule.updates_whole_variables()) return update_whole_variables(part, step, scalars);
  const int threads = threads_for(elements, part);
  intra_op_parallel_for(0, threads, 1, [&](int64_t first, int64_t last) {
    for (int64_t thread = first; thread < last; ++thread) {
      SlicePass pass(targets(), sources);
      const ThreadPart own{part, static_cast<int>(thread), threads};
      walk(targets(), own, [&](size_t i, SliceRange range) {
        if (range.begin >= range.end || !is_on_host(i)) return;
        pass.use(step.rule_of(targets()[i]), scalars);
        if (!kept_.keeps(i)) return pass.update(i, range);
        // In parts that stay in the processor's cache between the copy and the update.
        for (int64_t begin = range.begin; begin < range.end; begin += kElementsKeptAtOnce) {
          const SliceRange block{begin, std::min(begin + kElementsKeptAtOnce, range.end)};
          kept_.keep(i, block);
          pass.update(i, block);
        }
      });
    }
  });
}

void MirroredExchange::prepare_to_keep(const Replica& replica, const UpdateStep& step,
                                       bool from_sums) {
  if (from_sums && !sums_.result.updated) return;
  KeptTargets::Update update{.targets = targets(), .step = step};
  update.whole = step.rule.updates_whole_variables() || any_constraint_ || !from_sums;
  if (from_sums) {
    update.sums = sums_.dense;
    update.rows = sums_.rows;
  }
  kept_.prepare(replica, update);
}

// Each is the part of the replica in whose share of all elements its middle lies.
void MirroredExchange::update_whole_variables(const WorkPart& part, const UpdateStep& step,
                                              const optim::StepScalars& scalars) {
  int64_t total = 0;
  for (const UpdateTarget& target : targets()) total += size_of(target);
  const SliceRange mine = collective::slice_of(total, part.number, part.of);
  int64_t offset = 0;
  for (size_t i = 0; i < targets().size(); ++i) {
    const UpdateTarget& target = targets()[i];
    const int64_t middle = offset + size_of(target) / 2;
    offset += size_of(target);
    const bool is_mine = middle >= mine.begin && middle < mine.end;
    if (!is_mine || !is_on_host(i) || !sums_.dense[i].defined()) continue;
    update_whole_on_host(target, step.rule_of(target), scalars, sums_.dense[i]);
  }
}

void MirroredExchange::make_sums_whole() {
  for (size_t i = 0; i < targets().size(); ++i) {
    if (!is_on_host(i)) continue;  // the pass over devices multiplies
    if (!sums_.rows[i].empty()) {
      sums_.dense[i] = dense_of_rows(sums_.rows[i][0], targets()[i].variable);
      sums_.rows[i] = {};
    }
    if (sums_.scale != 1 && sums_.dense[i].defined()) scale_sum(i, sums_.scale);
  }
}

UpdateResult MirroredExchange::update_from_sums(Replica& replica, Contribution& mine,
                                                const UpdateStep& step,
                                                const optim::StepScalars& scalars) {
  const int own = replica.local_replica_id();
  const auto update = [&](Contributions all, const WorkPart& part) {
    if (!sums_.result.updated) return;
    update_slices(part,
                  {.replicas = all,
                   .sums = sums_.dense,
                   .scale = sums_.scale,
                   .scale_on_device = sums_.scale_on_device,
                   .rows = sums_.rows,
                   .row_additions = division_ ? &division_->additions() : nullptr},
                  step, scalars, elements_of(mine, step.rule));
  };
  const bool for_all = works_for_all(replica);
  const auto update_for_all = [&](Contributions all) {
    if (!for_all) return;
    prepare_to_keep(replica, step, /*from_sums=*/true);
    update(all, kWholeWork);
  };
  if (crosses_tasks(step)) {
    sum_over_tasks(replica, mine, step, update_for_all);
  } else {
    sum_within_task(replica, mine, step, update_for_all);
  }
  const UpdateResult result = sums_.result;
  if (!for_all) {
    replica.group().share(
        own, kCall, &mine,
        [&](Contributions) { prepare_to_keep(replica, step, /*from_sums=*/true); },
        [&](Contributions all) { update(all, part_of(replica)); });
  }
  if (result.updated) {
    constrain(replica, mine, [&](Contributions all) {
      return GradientSources{.replicas = all, .sums = sums_.dense, .rows = sums_.rows};
    });
  }
  return result;
}

void MirroredExchange::constrain(Replica& replica, Contribution& mine,
                                 FunctionRef<GradientSources(Contributions)> sources) {
  if (!any_constraint_) return;
  replica.group().share(
      replica.local_replica_id(), kCall, &mine, [](Contributions) {},
      [&](Contributions all) {
        constrain_targets(targets(), sources(all), {local_id(replica), local_replicas_});
      });
}

void MirroredExchange::sum_over_tasks(Replica& replica, Contribution& mine, const UpdateStep& step,
                                      FunctionRef<void(Contributions)> update) {
  collective::SyncGroup& group = replica.group();
  const int own = replica.local_replica_id();
  const auto settle = [&](Contributions all) {
    check_same_targets(all);
    between_->settle(all, arrival_[0]);
  };
  const auto finish = [&](Contributions all) {
    {
      const ScopedPhase phase(profiler::Phase::kReduce);
      between_->finish(all, step);
      if (step.transforms_sums()) between_->merge_rows();
    }
    sums_.dense.assign(between_->dense().begin(), between_->dense().end());
    sums_.rows.assign(between_->rows().begin(), between_->rows().end());
    transform_sums(step);
    update(all);
  };
  if (works_for_all(replica)) {
    return group.meet(own, kCall, &mine, [&](Contributions all) {
      settle(all);
      between_->add_up_rest();
      finish(all);
    });
  }
  group.share(own, kCall, &mine, settle, [&](Contributions) { between_->add_up_rest(); });
  group.meet(own, kCall, &mine, finish);
}

void MirroredExchange::sum_within_task(Replica& replica, Contribution& mine, const UpdateStep& step,
                                       FunctionRef<void(Contributions)> update) {
  collective::SyncGroup& group = replica.group();
  const int own = replica.local_replica_id();
  const auto prepare = [&](Contributions all) {
    check_same_targets(all);
    densify(all, /*always=*/true);
    prepare_sums(used(all, step));
  };
  const auto add_up = [&](Contributions all, const WorkPart& part) {
    const ScopedPhase phase(profiler::Phase::kReduce);
    SlicePass pass(targets(), sources_of(used(all, step)));
    walk(targets(), {part, 0, 1}, [&](size_t i, SliceRange range) {
      if (range.begin < range.end && is_on_host(i)) pass.add_up(i, range, sums_.memory[i]);
    });
    if (any_on_device_ && part.number == 0) add_up_on_devices(used(all, step));
  };
  if (works_for_all(replica)) {
    return group.meet(own, kCall, &mine, [&](Contributions all) {
      prepare(all);
      add_up(all, kWholeWork);
      transform_sums(step);
      update(all);
    });
  }
  group.share(own, kCall, &mine, prepare,
              [&](Contributions all) { add_up(all, part_of(replica)); });
  group.meet(own, kCall, &mine, [&](Contributions all) {
    transform_sums(step);
    update(all);
  });
}

void MirroredExchange::add_up_on_devices(Contributions all) {
  const DevicePass pass(targets(), {.replicas = all});
  for (size_t i = 0; i < targets().size(); ++i) {
    if (!is_on_host(i)) sums_.dense[i] = pass.sum(i);
  }
}

void MirroredExchange::prepare_sums(Contributions all) {
  const size_t count = targets().size();
  if (sums_.memory.empty()) {
    for (size_t i = 0; i < count; ++i) {
      const distribute::Variable& variable = targets()[i].variable;
      sums_.memory.push_back(
          is_on_host(i) ? at::empty(variable.shape(), at::dtype(variable.dtype())) : Tensor());
    }
  }
  sums_.rows.assign(count, {});
  sums_.dense.assign(count, Tensor());
  for (size_t r = 0; r < all.size(); ++r) {
    const auto gradients = of_replica(all, r).gradients;
    for (size_t i = 0; i < count; ++i) {
      if (gradients[i].defined()) sums_.dense[i] = sums_.memory[i];
    }
  }
}

// The numbers of the sum of target i, as a span; not called where no replica has a gradient.
template <class Visit>
void MirroredExchange::visit_sum(size_t i, const Visit& visit) {
  const DType dtype = targets()[i].variable.dtype();
  if (!sums_.rows[i].empty()) {
    std::vector<char>& values = between_->values_of_rows(i).values;
    visit_numbers(dtype, values.data(), values.size(), visit);
  } else if (const Tensor& sum = sums_.dense[i]; sum.defined()) {
    visit_numbers(dtype, sum.data_ptr(), sum.nbytes(), visit);
  }
}

// The sum of squares of each target; 0 where it has none. Waits for devices once.
void MirroredExchange::square_sums() {
  sums_.squares.assign(targets().size(), 0);
  std::vector<Tensor> on_devices;
  std::vector<size_t> places;
  for (size_t i = 0; i < targets().size(); ++i) {
    const Tensor& sum = sums_.dense[i];
    if (sum.defined() && !sum.is_cpu()) {
      on_devices.push_back(sum.to(at::kDouble).square().sum());
      places.push_back(i);
    } else {
      visit_sum(i, [&](auto numbers) { sums_.squares[i] += squares_of(numbers); });
    }
  }
  if (places.empty()) return;
  const c10::Device device = on_devices[0].device();
  for (Tensor& one : on_devices) one = one.to(device);
  const Tensor all = at::stack(on_devices).cpu();
  for (size_t k = 0; k < places.size(); ++k) sums_.squares[places[k]] = all.data_ptr<double>()[k];
}

void MirroredExchange::scale_sum(size_t i, double factor) {
  if (const Tensor& sum = sums_.dense[i]; sum.defined() && !sum.is_cpu()) {
    sums_.dense[i] = sum * factor;  // not in place: it may be a replica's gradient
    return;
  }
  visit_sum(i, [&](auto numbers) {
    for (auto& number : numbers) {
      number = static_cast<std::remove_reference_t<decltype(number)>>(number * factor);
    }
  });
}

// Clips by the norm of all sums together, so that their direction stays. Squares are added up in
// one order, whatever the number of replicas and tasks.
void MirroredExchange::clip_sums(const UpdateStep& step) {
  square_sums();
  double squares = 0;
  for (size_t i = 0; i < targets().size(); ++i) {
    const double own = sums_.squares[i] * step.factor * step.factor;
    squares += own;
    if (step.clipnorm == 0) continue;
    const double factor = clip_factor(std::sqrt(own), step.clipnorm);
    if (factor != 1) scale_sum(i, factor);
  }
  const double norm = std::sqrt(squares);
  sums_.result.global_norm = norm;
  if (!std::isfinite(norm) && step.skip_not_finite) sums_.result.updated = false;
  if (step.global_clipnorm > 0) sums_.scale *= global_clip_factor(norm, step.global_clipnorm);
}

bool MirroredExchange::sums_are_on_devices() const {
  for (size_t i = 0; i < targets().size(); ++i) {
    const Tensor& sum = sums_.dense[i];
    if (!sums_.rows[i].empty() || (sum.defined() && sum.is_cpu())) return false;
  }
  return true;
}

void MirroredExchange::transform_sums(const UpdateStep& step) {
  sums_.scale = step.factor;
  sums_.scale_on_device = Tensor();
  sums_.result = {};
  // Whether they are finite decides what the host does next.
  if (step.clips() && !step.skip_not_finite && sums_are_on_devices()) {
    const at::NoGradGuard no_grad;
    sums_.scale_on_device = clip_on_devices(sums_.dense, step);
  } else if (step.needs_norms()) {
    clip_sums(step);
  }
  if (step.rule.updates_whole_variables()) return make_sums_whole();
  if (sums_.scale == 1) return;
  for (size_t i = 0; i < targets().size(); ++i) {  // few numbers; the pass multiplies dense ones
    if (!sums_.rows[i].empty()) scale_sum(i, sums_.scale);
  }
}

}  // namespace cohort::internal

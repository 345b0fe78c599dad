#include "cohort/parameter_server/variables/push_exchange.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sparse_coo_tensor.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "cohort/core/structure/contiguous_elements.h"
#include "cohort/ops/scaled.h"
#include "cohort/optim/make_rule.h"

namespace cohort::internal {

namespace {

std::shared_ptr<ServedVariable> served(const distribute::Variable& variable) {
  auto found = std::dynamic_pointer_cast<ServedVariable>(variable.impl_ptr());
  if (found != nullptr) return found;
  throw FailedPreconditionError(str("variable '", variable.name(), "' is not on ps tasks: make it ",
                                    "under the scope of the ParameterServerStrategy"));
}

size_t local_id(const Replica& replica) { return static_cast<size_t>(replica.local_replica_id()); }

// The gradient in place of what libtorch computes from one without rows, which forgets of what
// shape they would be.
Tensor without_rows(const ServedVariable& variable) {
  std::vector<int64_t> rows = variable.shape().vec();
  rows[0] = 0;
  return at::sparse_coo_tensor(at::empty({1, 0}, int64),
                               at::empty(rows, at::dtype(variable.dtype())), variable.shape())
      .coalesce();
}

// Detached, on the host, of the variable's form; sparse ones coalesced, so that rows ascend and
// none comes twice.
Tensor usable(const Tensor& gradient, const ServedVariable& variable, int replica) {
  if (gradient.sizes() != variable.shape() || gradient.scalar_type() != variable.dtype()) {
    throw InvalidArgumentError(str("replica ", replica, ": the gradient of variable '",
                                   variable.name(), "' is ", describe(gradient),
                                   ", but the variable ", dtype_name(variable.dtype()), ' ',
                                   shape_str(variable.shape())));
  }
  const Tensor own = gradient.detach().cpu();
  if (own.layout() == at::kStrided) return contiguous_elements(own);
  if (own._nnz() == 0 && own.dim() > 0) return without_rows(variable);
  if (own.sparse_dim() != 1) return own.to_dense();
  return own.coalesce();
}

// What the ps tasks do to the variable after an update; nullptr: nothing.
const optim::Projection* projection_of(const ServedVariable& variable) {
  return variable.options().constraint.projection();
}

bool is_sparse(const Tensor& gradient) { return gradient.layout() != at::kStrided; }

// A rule by which rows without a gradient change, too, must run on every shard.
std::vector<ShardIds> with_empty_parts(std::vector<ShardIds> parts, size_t shards) {
  std::vector<ShardIds> all(shards);
  for (size_t i = 0; i < shards; ++i) all[i] = {i, 0, at::empty({0}, int64)};
  for (ShardIds& part : parts) all[part.shard] = std::move(part);
  return all;
}

// What is sent when the step has ended, and its function may have written to the gradients: a copy,
// unless nobody else has its memory by now.
Tensor owned(const Tensor& gradient) {
  if (!is_sparse(gradient)) {
    return gradient.storage().use_count() == 1 ? gradient : gradient.clone();
  }
  const auto is_ours = [](const Tensor& part) {  // that of `gradient`, beside it
    return part.use_count() == 2 && part.storage().use_count() == 1;
  };
  return is_ours(gradient._indices()) && is_ours(gradient._values()) ? gradient : gradient.clone();
}

double sum_of_squares(const Tensor& gradient) {
  const Tensor values = is_sparse(gradient) ? gradient._values() : gradient;
  return values.to(float64).square().sum().item<double>();
}

}  // namespace

PushExchange::PushExchange(std::vector<UpdateTarget> targets,
                           std::shared_ptr<const StrategyCore> strategy, VariableHost& host)
    : GradientExchange(std::move(targets), static_cast<size_t>(host.num_local_replicas())),
      strategy_(std::move(strategy)),
      host_(host),
      gradients_([this] {
        return std::make_unique<Gradients>(static_cast<size_t>(host_.num_local_replicas()),
                                           std::vector<Tensor>(this->targets().size()));
      }) {
  for (const UpdateTarget& target : this->targets()) {
    variables_.push_back(served(target.variable));
    slots_.emplace_back();
    for (const distribute::Variable& slot : target.slots) slots_.back().push_back(served(slot));
  }
}

void PushExchange::begin(Replica& replica, Arrival) {
  for (Tensor& gradient : gradients_.get()[local_id(replica)]) gradient = Tensor();
}

void PushExchange::bring(Replica& replica, size_t target, const Tensor& gradient) {
  if (!gradient.defined()) return;
  gradients_.get()[local_id(replica)][target] =
      usable(gradient, *variables_[target], replica.replica_id_in_sync_group());
}

bool PushExchange::has(const Replica& replica, size_t target) const {
  return gradients_.get()[local_id(replica)][target].defined();
}

UpdateResult PushExchange::finish(Replica& replica, const UpdateStep& step) {
  UpdateResult result;
  struct Frame {
    const GradientExchange* exchange;
    UpdateResult* result;
  } mine{this, &result};
  replica.group().meet(
      replica.local_replica_id(), "apply_gradients", &mine, [&](std::span<void* const> all) {
        for (size_t r = 1; r < all.size(); ++r) {
          check_same_targets(*this, 0, *static_cast<Frame*>(all[r])->exchange, static_cast<int>(r));
        }
        Gradients& gradients = gradients_.get();
        const UpdateResult shared = push(gradients, step);
        for (auto& of_replica : gradients)
          std::fill(of_replica.begin(), of_replica.end(), Tensor());
        for (void* one : all) *static_cast<Frame*>(one)->result = shared;
      });
  return result;
}

// In the order of replicas; undefined where none has a gradient.
Tensor PushExchange::sum(const Gradients& all, size_t target, bool aggregate) const {
  Tensor total;
  for (const auto& of_replica : all) {
    const Tensor& gradient = of_replica[target];
    if (!gradient.defined()) continue;
    if (!total.defined()) {
      total = gradient;
    } else if (is_sparse(total) != is_sparse(gradient)) {
      total = (is_sparse(total) ? total.to_dense() : total) +
              (is_sparse(gradient) ? gradient.to_dense() : gradient);
    } else if (is_sparse(total)) {
      if (total._nnz() == 0) {
        total = gradient;
      } else if (gradient._nnz() != 0) {
        total = (total + gradient).coalesce();
      }
    } else {
      total = total + gradient;
    }
    if (!aggregate) break;
  }
  return total;
}

UpdateResult PushExchange::push(const Gradients& all, const UpdateStep& step) {
  const at::NoGradGuard no_grad;
  UpdateResult result;
  std::vector<Tensor> sums;
  for (size_t i = 0; i < variables_.size(); ++i) {
    sums.push_back(sum(all, i, step.aggregate_gradients));
  }
  if (step.transforms_sums()) {
    double squares = 0;
    for (Tensor& one : sums) {
      if (!one.defined()) continue;
      const double of_target = sum_of_squares(one) * step.factor * step.factor;
      squares += of_target;
      if (step.clipnorm == 0) continue;
      const double factor = clip_factor(std::sqrt(of_target), step.clipnorm);
      if (factor != 1) one = scaled(one, factor);
    }
    result.global_norm = std::sqrt(squares);
    if (step.skip_not_finite && !std::isfinite(squares)) {
      result.updated = false;
      return result;
    }
    double factor = step.factor;
    if (step.global_clipnorm > 0) {
      factor *= global_clip_factor(result.global_norm, step.global_clipnorm);
    }
    for (Tensor& one : sums) {
      if (factor != 1 && one.defined()) one = scaled(one, factor);
    }
  }
  for (size_t i = 0; i < sums.size(); ++i) {
    if (!sums[i].defined()) continue;
    const Tensor gradient = owned(sums[i]);
    push_one(i, gradient, step);
    std::vector<std::shared_ptr<TaskCopies>> written{variables_[i]->copies()};
    for (const auto& slot : slots_[i]) written.push_back(slot->copies());
    host_.step().add(StepUpdate{
        .written = {written.begin(), written.end()},
        .apply_here = [update =
                           TaskCopies::Update{.written = written,
                                              .gradient = gradient,
                                              .rule = shared_rule(step, i),
                                              .learning_rate = step.learning_rate,
                                              .iteration = step.iteration,
                                              .constraint = variables_[i]->options().constraint}] {
          TaskCopies::apply(update);
        }});
  }
  return result;
}

void PushExchange::push_one(size_t target, const Tensor& gradient, const UpdateStep& step) {
  const ServedVariable& variable = *variables_[target];
  const optim::UpdateRule& rule = step.rule_of(targets()[target]);
  check_whole(rule, variable);
  const auto update = [&](const PlacedShard& shard) {
    UpdateShard op{.key = shard.place.key,
                   .slots = {},
                   .gradient = {},
                   .indices = {},
                   .rule = shared_rule(step, target),
                   .learning_rate = step.learning_rate,
                   .iteration = step.iteration};
    const auto index = static_cast<size_t>(shard.place.key.shard);
    op.based_on = variable.copies()->version_of_shard(index);
    if (const auto* projection = projection_of(variable)) op.constraint = *projection;
    for (const auto& slot : slots_[target])
      op.slots.push_back(slot->layout().shards[index].place.key);
    return op;
  };
  if (!is_sparse(gradient)) {
    for (const PlacedShard& shard : variable.layout().shards) {
      UpdateShard op = update(shard);
      op.gradient = variable.layout().part_of(gradient, shard);
      host_.step().add(shard.place.ps, std::move(op));
    }
    return;
  }
  // The rows ascend, so that those of a shard lie together: no copy of them is made.
  const auto& shards = variable.layout().shards;
  const Tensor indices = gradient._indices()[0].contiguous();
  const Tensor values = gradient._values();
  auto parts = split_ids(indices, variable.shape()[0], static_cast<int64_t>(shards.size()));
  if (!rule.zero_gradient_is_no_op() || projection_of(variable) != nullptr) {
    parts = with_empty_parts(std::move(parts), shards.size());
  }
  for (const ShardIds& part : parts) {
    UpdateShard op = update(shards[part.shard]);
    op.gradient = values.narrow(0, part.begin, part.ids.numel());
    op.indices = part.ids;
    host_.step().add(shards[part.shard].place.ps, std::move(op));
  }
}

// A rule that outlives the optimizer: what is sent may be kept longer.
std::shared_ptr<const optim::UpdateRule> PushExchange::shared_rule(const UpdateStep& step,
                                                                   size_t target) {
  const optim::UpdateRule& rule = step.rule_of(targets()[target]);
  const std::lock_guard lock(mutex_);
  auto& shared = &rule == &step.rule ? rule_ : rule_without_decay_;
  if (shared == nullptr) shared = optim::make_rule(rule.config());
  return shared;
}

void PushExchange::check_whole(const optim::UpdateRule& rule,
                               const ServedVariable& variable) const {
  const size_t shards = variable.layout().shards.size();
  if (!rule.updates_whole_variables() || shards == 1) return;
  throw UnimplementedError(
      str(rule.name(), " updates whole variables, but variable '", variable.name(), "' lies in ",
          shards, " shards; make it without a partitioner, or with one that leaves it ",
          "whole, or use another optimizer"));
}

}  // namespace cohort::internal

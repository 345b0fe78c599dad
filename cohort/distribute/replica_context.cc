#include "cohort/distribute/replica_context.h"

#include <ATen/ops/scalar_tensor.h>
#include <torch/csrc/autograd/custom_function.h>

#include "cohort/collective/replica_collectives.h"
#include "cohort/distribute/context.h"
#include "cohort/distribute/context_stack.h"
#include "cohort/distribute/strategy_core.h"

namespace cohort::distribute {
namespace {

using internal::str;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

Tensor sum_over_replicas(ReplicaContext& context, const Tensor& value) {
  if (context.group() == nullptr) return value.clone();
  return collective::all_reduce_sum(*context.group(), context.local_replica_id(), value);
}

// The replica whose thread runs the backward pass: libtorch runs it on the thread that asks for it.
ReplicaContext& backward_replica() {
  if (ReplicaContext* replica = get_replica_context()) return *replica;
  throw FailedPreconditionError(
      "the gradient of all_reduce or all_gather must be taken inside the step that computed it");
}

struct AllReduce : torch::autograd::Function<AllReduce> {
  static Tensor forward(AutogradContext*, const Tensor& value) {
    return sum_over_replicas(backward_replica(), value);
  }
  static variable_list backward(AutogradContext*, variable_list gradients) {
    return {sum_over_replicas(backward_replica(), gradients[0])};
  }
};

struct AllGather : torch::autograd::Function<AllGather> {
  static Tensor forward(AutogradContext* saved, const Tensor& value, int64_t axis) {
    ReplicaContext& context = backward_replica();
    const Tensor sizes = at::scalar_tensor(value.size(axis), at::dtype(at::kLong)).reshape({1});
    const Tensor all_sizes =
        collective::all_gather(*context.group(), context.local_replica_id(), sizes, 0);
    saved->saved_data["axis"] = axis;
    saved->saved_data["size"] = value.size(axis);
    saved->saved_data["begin"] =
        all_sizes.narrow(0, 0, context.local_replica_id()).sum().item<int64_t>();
    return collective::all_gather(*context.group(), context.local_replica_id(), value, axis);
  }
  static variable_list backward(AutogradContext* saved, variable_list gradients) {
    const Tensor total = sum_over_replicas(backward_replica(), gradients[0]);
    return {total.narrow(saved->saved_data["axis"].toInt(), saved->saved_data["begin"].toInt(),
                         saved->saved_data["size"].toInt()),
            Tensor()};
  }
};

}  // namespace

ReplicaContext::ReplicaContext(internal::StrategyCore& core, int local_id,
                               collective::ThreadGroup* group)
    : core_(core), local_id_(local_id), replica_id_(core.replica_id(local_id)), group_(group) {}

int ReplicaContext::num_replicas_in_sync() const { return core_.num_replicas_in_sync(); }

Strategy ReplicaContext::strategy() const { return Strategy(core_.shared_from_this()); }

std::vector<std::string> ReplicaContext::devices() const {
  return {core_.worker_devices()[static_cast<size_t>(local_id_)]};
}

void ReplicaContext::merge(const char* what, void* mine,
                           FunctionRef<void(Strategy&, std::span<void* const>)> leader) {
  if (get_replica_context() != this) {
    throw FailedPreconditionError(str("Mismatching ReplicaContext: ", what,
                                      " was called on a replica other than the calling one"));
  }
  const auto across_replicas = [&](std::span<void* const> all) {
    internal::ContextGuard guard(core_, nullptr);
    Strategy strategy = this->strategy();
    leader(strategy, all);
  };
  if (group_ == nullptr) return across_replicas(std::span<void* const>(&mine, 1));
  group_->meet(local_id_, what, mine, across_replicas);
}

Tensor ReplicaContext::all_reduce(ReduceOp op, const Tensor& value) {
  if (op == ReduceOp::MEAN && !value.is_floating_point()) {
    throw InvalidArgumentError(str("all_reduce MEAN of ", internal::describe(value),
                                   "; cast it to a floating dtype first"));
  }
  const Tensor sum = AllReduce::apply(value);
  return op == ReduceOp::MEAN ? sum / num_replicas_in_sync() : sum;
}

Structure ReplicaContext::all_reduce(ReduceOp op, const Structure& value) {
  return value.map([&](const Leaf& leaf) -> Leaf { return all_reduce(op, leaf.tensor()); });
}

Tensor ReplicaContext::all_gather(const Tensor& value, int64_t axis) {
  collective::check_can_concat({value}, axis);
  if (group_ == nullptr) return value.clone();
  return AllGather::apply(value, axis);
}

}  // namespace cohort::distribute

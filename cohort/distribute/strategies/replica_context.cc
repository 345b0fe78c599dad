#include "cohort/distribute/strategies/replica_context.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include "cohort/collective/call_timeout.h"
#include "cohort/collective/replica_collectives.h"
#include "cohort/distribute/core/communication_scope.h"
#include "cohort/distribute/core/context_stack.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/reduce/cross_device_ops.h"
#include "cohort/distribute/reduce/gather_strings.h"
#include "cohort/distribute/reduce/structure_form.h"
#include "cohort/distribute/values/ragged_values.h"
#include "cohort/distribute/values/reduction.h"
#include "cohort/ops/random.h"

namespace cohort::distribute {
namespace {

using collective::ScopedCallTimeout;
using experimental::CommunicationOptions;
using internal::Replica;
using internal::str;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Reduces with the object that the program gave to its strategy.
Tensor reduce_with(const CrossDeviceOps& ops, Replica& replica, const Tensor& value,
                   const char* what) {
  struct Frame {
    Tensor value;
    Tensor result;
  } mine{value.detach(), {}};
  replica.merge(what, &mine, [&](std::span<void* const> all) {
    PerReplica<Tensor>::Values values;
    for (void* one : all) values.push_back(static_cast<Frame*>(one)->value);
    const PerReplica<Tensor> together(std::move(values));
    const Mirrored<Tensor> sums = ops.reduce(ReduceOp::SUM, together, together);
    for (size_t r = 0; r < all.size(); ++r) {
      static_cast<Frame*>(all[r])->result = sums.value(r).clone();
    }
  });
  return mine.result;
}

Tensor sum_over_replicas(Replica& replica, const Tensor& value, const char* what) {
  if (const CrossDeviceOps* ops = replica.core().cross_device_ops()) {
    return reduce_with(*ops, replica, value, what);
  }
  return collective::all_reduce_sum(replica.group(), replica.local_replica_id(), value, what);
}

// Saves the call, with its timeout, which is that of its gradient, too.
void save_call(AutogradContext& saved, const Replica& replica) {
  saved.saved_data["timeout"] = static_cast<int64_t>(ScopedCallTimeout::current().count());
  saved.saved_data["strategy"] = reinterpret_cast<int64_t>(&replica.core());
  saved.saved_data["replica"] = static_cast<int64_t>(replica.local_replica_id());
}

// The replica that the forward pass ran in: the backward pass must run there as well. On the CPU
// libtorch runs it on the thread that asks for it; on other devices on threads of its own.
Replica& saved_replica(AutogradContext& saved) {
  Replica* replica = internal::current_replica();
  if (replica != nullptr &&
      saved.saved_data["strategy"].toInt() == reinterpret_cast<int64_t>(&replica->core()) &&
      saved.saved_data["replica"].toInt() == replica->local_replica_id()) {
    return *replica;
  }
  throw FailedPreconditionError(
      "the gradient of all_reduce or all_gather must be taken by the replica that computed it, in "
      "the same step, of values on the CPU");
}

Tensor sum_of_gradients(AutogradContext& saved, const Tensor& gradient, const char* what) {
  const ScopedCallTimeout timeout(std::chrono::nanoseconds(saved.saved_data["timeout"].toInt()));
  return sum_over_replicas(saved_replica(saved), gradient, what);
}

struct AllReduce : torch::autograd::Function<AllReduce> {
  static Tensor forward(AutogradContext* saved, const Tensor& value, bool mean) {
    Replica& replica = *internal::current_replica();
    save_call(*saved, replica);
    return sum_over_replicas(replica, value, mean ? "all_reduce MEAN" : "all_reduce SUM");
  }
  static variable_list backward(AutogradContext* saved, variable_list gradients) {
    return {sum_of_gradients(*saved, gradients[0], "gradient of all_reduce"), Tensor()};
  }
};

// The value of a replica, sent to the other tasks if there are any.
Tensor send_from(collective::SyncGroup& group, at::ArrayRef<Tensor> local_values, int source) {
  const collective::GroupView& view = *group.view();
  const int within = source - view.first_replica();
  const bool is_here = within >= 0 && within < view.num_local_replicas();
  const Tensor mine = local_values[is_here ? static_cast<size_t>(within) : 0].detach();
  if (!group.spans_tasks()) return mine;
  const Tensor sent = (is_here ? mine.cpu() : at::empty_like(mine, at::kCPU)).contiguous();
  int root = 0;
  while (view.replicas_before(root + 1) <= source) ++root;
  const std::string signature = str(internal::dtype_name(mine.scalar_type()), ' ',
                                    internal::shape_str(mine.sizes()), " of replica ", source);
  collective::broadcast(group.between(),
                        {sent.data_ptr(), static_cast<int64_t>(sent.nbytes()), uint8}, root,
                        {.name = "broadcast", .signature = signature, .timeout = group.timeout()});
  return sent;
}

Tensor broadcast_from(Replica& replica, const Tensor& value, int source) {
  struct Frame {
    Tensor value;
    int source;
    Tensor result;
  } mine{value.detach(), source, {}};
  replica.merge("broadcast", &mine, [&](std::span<void* const> all) {
    std::vector<Tensor> values;
    for (void* one : all) {
      const auto& other = *static_cast<Frame*>(one);
      if (other.source != source) {
        throw InvalidArgumentError(str("replicas broadcast the value of replica ", source,
                                       " and that of replica ", other.source));
      }
      values.push_back(other.value);
    }
    collective::check_same_shape(values, replica.view().first_replica());
    const Tensor sent = send_from(replica.group(), values, source);
    for (void* one : all) {
      auto& other = *static_cast<Frame*>(one);
      other.result = sent.to(other.value.device(), /*non_blocking=*/false, /*copy=*/true);
    }
  });
  return mine.result;
}

struct Broadcast : torch::autograd::Function<Broadcast> {
  static Tensor forward(AutogradContext* saved, const Tensor& value, int64_t source) {
    Replica& replica = *internal::current_replica();
    save_call(*saved, replica);
    saved->saved_data["is_source"] = replica.replica_id_in_sync_group() == source;
    return broadcast_from(replica, value, static_cast<int>(source));
  }
  static variable_list backward(AutogradContext* saved, variable_list gradients) {
    const Tensor total = sum_of_gradients(*saved, gradients[0], "gradient of broadcast");
    return {saved->saved_data["is_source"].toBool() ? total : at::zeros_like(total), Tensor()};
  }
};

struct AllGather : torch::autograd::Function<AllGather> {
  static Tensor forward(AutogradContext* saved, const Tensor& value, int64_t axis) {
    Replica& replica = *internal::current_replica();
    save_call(*saved, replica);
    const Tensor sizes = at::scalar_tensor(value.size(axis), at::dtype(at::kLong)).reshape({1});
    const Tensor all_sizes =
        collective::all_gather(replica.group(), replica.local_replica_id(), sizes, 0);
    saved->saved_data["axis"] = axis;
    saved->saved_data["size"] = value.size(axis);
    saved->saved_data["begin"] =
        all_sizes.narrow(0, 0, replica.replica_id_in_sync_group()).sum().item<int64_t>();
    return collective::all_gather(replica.group(), replica.local_replica_id(), value, axis);
  }
  static variable_list backward(AutogradContext* saved, variable_list gradients) {
    const Tensor total = sum_of_gradients(*saved, gradients[0], "gradient of all_gather");
    return {total.narrow(saved->saved_data["axis"].toInt(), saved->saved_data["begin"].toInt(),
                         saved->saved_data["size"].toInt()),
            Tensor()};
  }
};

}  // namespace

ReplicaContext::ReplicaContext(internal::StrategyCore& core, int local_id,
                               std::shared_ptr<const collective::GroupView> view,
                               const random::RandomGenerator* merge_generator,
                               internal::StepOutput* output)
    : Replica(core, local_id, std::move(view), merge_generator, output) {}

Strategy ReplicaContext::strategy() const { return Strategy(core().shared_from_this()); }

Tensor ReplicaContext::all_reduce(ReduceOp op, const Tensor& value,
                                  const CommunicationOptions& options) {
  if (!value.defined()) throw InvalidArgumentError("all_reduce of an undefined tensor");
  internal::check_reduce_op(op);
  internal::check_can_all_reduce(value);
  check_own_context("all_reduce");
  const internal::CommunicationScope communication(core(), options);
  const bool mean = op == ReduceOp::MEAN;
  const DType dtype = value.scalar_type();
  const Tensor sum = AllReduce::apply(dtype == int32 ? value.to(int64) : value, mean);
  return mean ? internal::mean_of(sum, num_replicas_in_sync(), dtype)
              : internal::sum_that_fits(sum, value, "all_reduce");
}

Structure ReplicaContext::all_reduce(ReduceOp op, const Structure& value,
                                     const CommunicationOptions& options) {
  internal::check_reduce_op(op);
  internal::check_can_reduce_rows("all_reduce", value);
  check_own_context("all_reduce");
  const internal::CommunicationScope communication(core(), options);
  internal::agree_on_form(*this, value, "all_reduce");
  return value.map(
      [&](const Leaf& leaf) -> Leaf { return all_reduce(op, leaf.tensor(), options); });
}

Tensor ReplicaContext::broadcast(const Tensor& value, int source_replica) {
  if (!value.defined()) throw InvalidArgumentError("broadcast of an undefined tensor");
  if (value.layout() != at::kStrided) {
    throw InvalidArgumentError(str("broadcast of ", internal::describe(value),
                                   ", which is sparse; send its rows and their indices"));
  }
  if (source_replica < 0 || source_replica >= num_replicas_in_sync()) {
    throw InvalidArgumentError(str("broadcast of the value of replica ", source_replica,
                                   ", but there are ", num_replicas_in_sync(), " replicas"));
  }
  check_own_context("broadcast");
  return Broadcast::apply(value, int64_t{source_replica});
}

Tensor ReplicaContext::all_gather(const Tensor& value, int64_t axis,
                                  const CommunicationOptions& options) {
  check_own_context("all_gather");
  const internal::CommunicationScope communication(core(), options);
  collective::check_can_concat({value}, axis);
  if (num_replicas_in_sync() == 1) return value.clone();
  return AllGather::apply(value, axis);
}

namespace {

StringTensor all_gather_strings(Replica& replica, const StringTensor& value, int64_t axis) {
  struct Frame {
    StringTensor value;
    int64_t axis;
  } mine{value, axis};
  replica.merge("all_gather of strings", &mine, [&](std::span<void* const> all) {
    std::vector<StringTensor> values;
    for (void* one : all) {
      const auto& other = *static_cast<Frame*>(one);
      if (other.axis != axis) {
        throw FailedPreconditionError(internal::str("replicas all_gather strings along axis ", axis,
                                                    " and along axis ", other.axis));
      }
      values.push_back(other.value);
    }
    const StringTensor together = internal::gather_strings(replica.core(), values, axis);
    for (void* one : all) static_cast<Frame*>(one)->value = together;
  });
  return mine.value;
}

}  // namespace

Structure ReplicaContext::all_gather(const Structure& value, int64_t axis,
                                     const CommunicationOptions& options) {
  check_own_context("all_gather");
  const internal::CommunicationScope communication(core(), options);
  const Structure lengths_too = internal::with_row_lengths("all_gather", value, axis);
  internal::agree_on_form(*this, lengths_too, "all_gather");
  return internal::with_row_splits(lengths_too.map([&](const Leaf& leaf) -> Leaf {
    if (leaf.is_strings()) return all_gather_strings(*this, leaf.strings(), axis);
    return all_gather(leaf.tensor(), axis, options);
  }));
}

}  // namespace cohort::distribute

namespace cohort::internal {

void check_same_types(std::span<void* const> frames, const char* tag, int first_replica) {
  for (size_t i = 0; i < frames.size(); ++i) {
    if (*static_cast<const char* const*>(frames[i]) == tag) continue;
    throw FailedPreconditionError(
        str("replica ", first_replica + static_cast<int>(i),
            " is in a merge_call with arguments or a result of other types than the "
            "last replica's; every replica must make the same calls in one order"));
  }
}

}  // namespace cohort::internal

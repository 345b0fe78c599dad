#include "cohort/collective/replica_collectives.h"

#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>

#include <cstring>

#include "cohort/collective/slices.h"
#include "cohort/collective/task_collectives.h"
#include "cohort/core/error.h"
#include "cohort/core/structure/contiguous_elements.h"

namespace cohort::collective {
namespace {

using internal::describe;
using internal::str;

struct Operand {
  Tensor value;   // contiguous, on the CPU
  Tensor result;  // written by every member, each its own slice
};

std::vector<Tensor> values_of(std::span<void* const> operands) {
  std::vector<Tensor> values;
  for (void* operand : operands) values.push_back(static_cast<Operand*>(operand)->value);
  return values;
}

// Adds up this member's slice of all values and writes it into all results.
void add_own_slice(std::span<void* const> operands, int rank) {
  const Operand& first = *static_cast<Operand*>(operands[0]);
  const int64_t item_size = static_cast<int64_t>(first.value.element_size());
  const SliceRange range = slice_of(first.value.numel(), rank, static_cast<int>(operands.size()));
  if (range.begin == range.end) return;
  const int64_t offset = range.begin * item_size;
  const auto at_offset = [offset](const Tensor& tensor) {
    return static_cast<char*>(tensor.data_ptr()) + offset;
  };
  c10::SmallVector<const void*, 8> sources;
  for (void* operand : operands)
    sources.push_back(at_offset(static_cast<Operand*>(operand)->value));
  char* sum = at_offset(first.result);
  add_slices(sum, sources, range.end - range.begin, first.value.scalar_type());
  for (void* operand : operands.subspan(1)) {
    std::memcpy(at_offset(static_cast<Operand*>(operand)->result), sum,
                static_cast<size_t>((range.end - range.begin) * item_size));
  }
}

// "float32 [4,3] with sparse_dim 1"
std::string describe_sparse(const Tensor& value) {
  if (value.layout() != at::kSparse) return str("a dense ", describe(value));
  return str(describe(value), " with sparse_dim ", value.sparse_dim());
}

void check_same_sparse(at::ArrayRef<Tensor> values, int first_replica) {
  check_same_shape(values, first_replica);
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].layout() == at::kSparse && values[i].sparse_dim() == values[0].sparse_dim()) {
      continue;
    }
    throw InvalidArgumentError(
        str("cannot reduce sparse values that differ between replicas: replica ", first_replica,
            " has ", describe_sparse(values[0]), ", replica ", first_replica + static_cast<int>(i),
            " has ", describe_sparse(values[i])));
  }
}

Tensor all_reduce_sparse(SyncGroup& group, int local_replica, const Tensor& value,
                         const char* what) {
  Operand mine{value.detach(), {}};
  // The name differs from that of dense values, so that both calls cannot meet.
  const std::string name = str(what, " of a sparse value");
  group.meet(local_replica, name.c_str(), &mine, [&](std::span<void* const> all) {
    const Tensor sum = sum_sparse(group, values_of(all), what);
    for (void* one : all) static_cast<Operand*>(one)->result = sum.clone();
  });
  return mine.result.to(value.device());
}

}  // namespace

void check_same_shape(at::ArrayRef<Tensor> values, int first_replica) {
  for (size_t i = 1; i < values.size(); ++i) {
    if (values[i].scalar_type() != values[0].scalar_type() ||
        values[i].sizes() != values[0].sizes()) {
      throw InvalidArgumentError(str("cannot reduce values that differ between replicas: replica ",
                                     first_replica, " has ", describe(values[0]), ", replica ",
                                     first_replica + static_cast<int>(i), " has ",
                                     describe(values[i])));
    }
  }
}

void check_can_gather(const Tensor& value) {
  if (!value.defined()) throw InvalidArgumentError("cannot gather an undefined tensor");
  if (value.layout() == at::kStrided) return;
  throw UnimplementedError(str("gather of sparse values is not supported (", describe(value),
                               "); gather their indices and values, or to_dense()"));
}

void check_can_concat(at::ArrayRef<Tensor> values, int64_t axis) {
  for (const Tensor& value : values) check_can_gather(value);
  const int64_t rank = values[0].dim();
  if (rank == 0) {
    throw InvalidArgumentError("cannot gather values of rank 0; give them a dimension first");
  }
  if (axis < 0 || axis >= rank) {
    throw InvalidArgumentError(str("gather along axis ", axis, " of values of shape ",
                                   internal::shape_str(values[0].sizes()),
                                   "; the axis must be in [0, ", rank, ")"));
  }
  for (size_t i = 1; i < values.size(); ++i) {
    bool same = values[i].scalar_type() == values[0].scalar_type() && values[i].dim() == rank;
    for (int64_t d = 0; same && d < rank; ++d) {
      same = d == axis || values[i].size(d) == values[0].size(d);
    }
    if (same) continue;
    throw InvalidArgumentError(str("Shape mismatch in gather along axis ", axis, ": replica 0 has ",
                                   describe(values[0]), ", replica ", i, " has ",
                                   describe(values[i])));
  }
}

Tensor all_reduce_sum(SyncGroup& group, int local_replica, const Tensor& value, const char* what) {
  if (group.view()->num_replicas() == 1) return value.detach().clone();
  if (value.layout() == at::kSparse) {
    return all_reduce_sparse(group, local_replica, value, what);
  }
  Operand mine;
  mine.value = internal::contiguous_elements(value.detach().to(at::kCPU));
  if (group.view()->division != nullptr) {
    group.meet(local_replica, what, &mine, [&](std::span<void* const> all) {
      const std::vector<Tensor> values = values_of(all);
      check_same_shape(values, group.view()->first_replica());
      const Tensor sum = sum_by_tree(group, values, what);
      for (void* one : all) static_cast<Operand*>(one)->result = sum;
    });
    return mine.result.to(value.device(), mine.result.scalar_type(), /*non_blocking=*/false,
                          /*copy=*/group.threads().size() > 1);
  }
  if (group.threads().size() == 1) {
    check_can_add(mine.value.scalar_type());
    mine.result = mine.value.clone();
  } else {
    mine.result = at::empty_like(mine.value);
    group.share(
        local_replica, what, &mine,
        [&](std::span<void* const> all) {
          const std::vector<Tensor> values = values_of(all);
          check_same_shape(values, group.view()->first_replica());
          check_can_add(values[0].scalar_type());
        },
        [local_replica](std::span<void* const> all) { add_own_slice(all, local_replica); });
  }
  if (group.spans_tasks()) {
    group.meet(local_replica, what, &mine, [&](std::span<void* const> all) {
      const Tensor& sum = static_cast<Operand*>(all[0])->result;
      sum_over_tasks(group, sum, what);
      for (void* other : all.subspan(1)) static_cast<Operand*>(other)->result.copy_(sum);
    });
  }
  return mine.result.to(value.device());
}

Tensor sum_sparse(SyncGroup& group, at::ArrayRef<Tensor> local_values, std::string_view what) {
  check_same_sparse(local_values, group.view()->first_replica());
  std::vector<Tensor> indices, values;
  for (const Tensor& value : local_values) {
    indices.push_back(value._indices().to(at::kCPU));
    values.push_back(value._values().to(at::kCPU));
  }
  // Only parts of the value are sent, whose shapes say nothing of the value's shape.
  const std::string name =
      group.spans_tasks() ? str(what, " of ", describe_sparse(local_values[0])) : std::string();
  indices = all_replicas_values(group, indices, name);
  values = all_replicas_values(group, values, name);
  return at::_sparse_coo_tensor_unsafe(at::cat(indices, 1), at::cat(values, 0),
                                       local_values[0].sizes());
}

Tensor all_gather(SyncGroup& group, int local_replica, const Tensor& value, int64_t axis) {
  struct Gathered {
    Tensor value;
    int64_t axis;
    Tensor result;
  } mine{value.detach(), axis, {}};
  group.meet(local_replica, "all_gather", &mine, [&](std::span<void* const> all) {
    std::vector<Tensor> values;
    // Values between tasks travel by way of the host.
    const at::Device device =
        group.spans_tasks() ? at::kCPU : static_cast<Gathered*>(all[0])->value.device();
    for (void* one : all) {
      const auto& gathered = *static_cast<Gathered*>(one);
      if (gathered.axis != axis) {
        throw InvalidArgumentError(
            str("replica ", group.view()->first_replica() + std::ssize(values),
                " gathers along axis ", gathered.axis, ", another along axis ", axis));
      }
      values.push_back(gathered.value.to(device));
    }
    const Tensor result = concat_replicas(group, values, axis);
    for (void* one : all) {
      auto* gathered = static_cast<Gathered*>(one);
      gathered->result = result.to(gathered->value.device(), result.scalar_type(),
                                   /*non_blocking=*/false, /*copy=*/true);
    }
  });
  return mine.result;
}

Tensor concat_replicas(SyncGroup& group, at::ArrayRef<Tensor> local_values, int64_t axis,
                       std::string_view what) {
  // Tasks that gather along different axes make different calls.
  const std::string name = group.spans_tasks() ? str(what, " along axis ", axis) : std::string();
  const std::vector<Tensor> values = all_replicas_values(group, local_values, name);
  check_can_concat(values, axis);
  return at::cat(values, axis);
}

}  // namespace cohort::collective

#include "cohort/collective/replica_collectives.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>

#include <cstring>

#include "cohort/collective/slices.h"
#include "cohort/core/error.h"

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
  const SliceRange range =
      slice_of(first.value.numel(), rank, static_cast<int>(operands.size()));
  if (range.begin == range.end) return;
  const int64_t offset = range.begin * item_size;
  const auto at_offset = [offset](const Tensor& tensor) {
    return static_cast<char*>(tensor.data_ptr()) + offset;
  };
  c10::SmallVector<const void*, 8> sources;
  for (void* operand : operands) sources.push_back(at_offset(static_cast<Operand*>(operand)->value));
  char* sum = at_offset(first.result);
  add_slices(sum, sources, range.end - range.begin, first.value.scalar_type());
  for (void* operand : operands.subspan(1)) {
    std::memcpy(at_offset(static_cast<Operand*>(operand)->result), sum,
                static_cast<size_t>((range.end - range.begin) * item_size));
  }
}

}  // namespace

void check_same_shape(at::ArrayRef<Tensor> values) {
  for (size_t i = 1; i < values.size(); ++i) {
    if (values[i].scalar_type() != values[0].scalar_type() ||
        values[i].sizes() != values[0].sizes()) {
      throw InvalidArgumentError(str("cannot reduce values that differ between replicas: replica 0 "
                                     "has ", describe(values[0]), ", replica ", i, " has ",
                                     describe(values[i])));
    }
  }
}

void check_can_concat(at::ArrayRef<Tensor> values, int64_t axis) {
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

Tensor all_reduce_sum(ThreadGroup& group, int rank, const Tensor& value, const char* what) {
  Operand mine;
  mine.value = value.detach().to(at::kCPU).contiguous();
  mine.result = at::empty_like(mine.value);
  group.share(
      rank, what, &mine,
      [](std::span<void* const> all) {
        const std::vector<Tensor> values = values_of(all);
        check_same_shape(values);
        check_can_add(values[0].scalar_type());
      },
      [rank](std::span<void* const> all) { add_own_slice(all, rank); });
  return mine.result.to(value.device());
}

Tensor all_gather(ThreadGroup& group, int rank, const Tensor& value, int64_t axis) {
  struct Gathered {
    Tensor value;
    int64_t axis;
    Tensor result;
  } mine{value.detach(), axis, {}};
  group.meet(rank, "all_gather", &mine, [axis](std::span<void* const> all) {
    std::vector<Tensor> values;
    const at::Device device = static_cast<Gathered*>(all[0])->value.device();
    for (void* member : all) {
      const auto& gathered = *static_cast<Gathered*>(member);
      if (gathered.axis != axis) {
        throw InvalidArgumentError(str("replica ", values.size(), " gathers along axis ",
                                       gathered.axis, ", another along axis ", axis));
      }
      values.push_back(gathered.value.to(device));
    }
    check_can_concat(values, axis);
    const Tensor result = at::cat(values, axis);
    for (void* member : all) {
      auto* gathered = static_cast<Gathered*>(member);
      gathered->result = result.to(gathered->value.device(), result.scalar_type(),
                                   /*non_blocking=*/false, /*copy=*/true);
    }
  });
  return mine.result;
}

}  // namespace cohort::collective

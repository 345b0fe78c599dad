#include "cohort/collective/task_collectives.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>

#include "cohort/collective/add_in_tree.h"
#include "cohort/collective/slices.h"
#include "cohort/collective/sum_division.h"
#include "cohort/core/structure/contiguous_elements.h"

namespace cohort::collective {
namespace {

using internal::describe;
using internal::str;

Buffer buffer_of(const Tensor& value) {
  return {value.data_ptr(), value.numel(), value.scalar_type()};
}

Buffer bytes_of(const Tensor& value) {
  return {value.data_ptr(), static_cast<int64_t>(value.nbytes()), uint8};
}

// Describes a replica's value before its bytes.
struct Form {
  static constexpr int64_t kMostDims = 16;
  int64_t dtype = 0;
  int64_t dims = 0;
  int64_t sizes[kMostDims] = {};

  static Form of(const Tensor& value) {
    if (value.dim() > kMostDims) {
      throw InvalidArgumentError(str("values of rank ", value.dim(),
                                     " cannot be gathered over "
                                     "tasks; the highest rank is ",
                                     kMostDims));
    }
    Form form{static_cast<int64_t>(value.scalar_type()), value.dim(), {}};
    for (int64_t d = 0; d < value.dim(); ++d) form.sizes[d] = value.size(d);
    return form;
  }
  Tensor make() const {
    return at::empty(at::IntArrayRef(sizes, static_cast<size_t>(dims)),
                     at::dtype(static_cast<DType>(dtype)));
  }
};

std::vector<Form> all_forms(SyncGroup& group, at::ArrayRef<Tensor> local_values,
                            std::string_view name) {
  const GroupView& view = *group.view();
  std::vector<Form> forms(static_cast<size_t>(view.num_replicas()));
  std::vector<int64_t> bytes_each;
  for (const int replicas : view.replicas_of) {
    bytes_each.push_back(replicas * static_cast<int64_t>(sizeof(Form)));
  }
  for (size_t i = 0; i < local_values.size(); ++i) {
    forms[static_cast<size_t>(view.first_replica()) + i] = Form::of(local_values[i]);
  }
  const auto bytes = static_cast<int64_t>(forms.size() * sizeof(Form));
  all_gather(group.between(), {forms.data(), bytes, uint8}, bytes_each,
             {.name = name, .timeout = group.timeout()});
  return forms;
}

}  // namespace

void sum_over_tasks(SyncGroup& group, const Tensor& value, std::string_view name) {
  if (!group.spans_tasks()) return;
  const std::string signature = describe(value);
  all_reduce(group.between(), buffer_of(value),
             {.name = name, .signature = signature, .timeout = group.timeout()});
}

Tensor sum_by_tree(SyncGroup& group, at::ArrayRef<Tensor> local_values, std::string_view name) {
  const SumDivision& division = *group.view()->division;
  c10::SmallVector<Tensor, 8> values;
  c10::SmallVector<const void*, 8> sources;
  for (const Tensor& value : local_values) {
    values.push_back(internal::contiguous_elements(value.detach().to(at::kCPU)));
    sources.push_back(values.back().data_ptr());
  }
  const DType dtype = values[0].scalar_type();
  check_can_add(dtype);
  const int64_t count = values[0].numel();
  const auto parts = static_cast<int64_t>(division.own_parts().size());
  const DType of_sums = sum_dtype(dtype);
  const int64_t bytes = parts * count * static_cast<int64_t>(c10::elementSize(of_sums));
  const BufferPool::Piece piece = group.buffers().take(std::max<int64_t>(1, bytes));
  division.add_up_local({sources.data(), sources.size()}, piece.data(), count, dtype);
  const std::string signature = group.spans_tasks() ? describe(values[0]) : std::string();
  group.between().all_reduce_parts(
      {piece.data(), count, of_sums},
      {.name = name, .signature = signature, .timeout = group.timeout()});
  // In memory of its own, rounded where it is of short floats.
  return at::from_blob(piece.data(), values[0].sizes(), at::dtype(of_sums))
      .to(dtype, /*non_blocking=*/false, /*copy=*/true);
}

Tensor sum_of_all_replicas(at::ArrayRef<Tensor> values) {
  std::vector<Tensor> contiguous;
  c10::SmallVector<const void*, 8> sources;
  for (const Tensor& value : values) {
    contiguous.push_back(internal::contiguous_elements(value.detach().to(at::kCPU)));
    sources.push_back(contiguous.back().data_ptr());
  }
  const DType dtype = contiguous[0].scalar_type();
  check_can_add(dtype);
  Tensor sum = at::empty(contiguous[0].sizes(), at::dtype(dtype));
  void* const target = sum.data_ptr();
  const auto replicas = static_cast<int>(values.size());
  add_in_tree({&target, 1}, {sources.data(), sources.size()},
              SumTree(replicas).additions_within({0, replicas}), sum.numel(), dtype);
  return sum;
}

void agree_between_tasks(SyncGroup& group, std::string_view name, std::string_view signature) {
  if (!group.spans_tasks()) return;
  group.repeatable([&](SyncGroup& now) {
    now.between().barrier({.name = name, .signature = signature, .timeout = now.timeout()});
    return std::string();
  });
}

void take_from_first_task(SyncGroup& group, const Tensor& value, std::string_view name,
                          std::string_view kind) {
  if (!group.spans_tasks()) return;
  const std::string signature = str(describe(value), kind.empty() ? "" : ", ", kind);
  const auto take = [&](SyncGroup& now) {
    broadcast(now.between(), bytes_of(value), 0,
              {.name = name, .signature = signature, .timeout = now.timeout()});
    return std::string(static_cast<const char*>(value.data_ptr()), value.nbytes());
  };
  if (!group.is_repeated()) return static_cast<void>(take(group));
  const std::string taken = group.repeatable(take);
  std::memcpy(value.data_ptr(), taken.data(), std::min(taken.size(), value.nbytes()));
}

std::string all_tasks_bytes(SyncGroup& group, std::string_view mine, std::string_view name) {
  return group.repeatable([&](SyncGroup& now) {
    const auto tasks = static_cast<size_t>(now.view()->num_tasks());
    std::string all(tasks * mine.size(), '\0');
    mine.copy(all.data() + static_cast<size_t>(now.view()->task) * mine.size(), mine.size());
    const std::vector<int64_t> bytes_each(tasks, static_cast<int64_t>(mine.size()));
    all_gather(now.between(), {all.data(), static_cast<int64_t>(all.size()), uint8}, bytes_each,
               {.name = name, .timeout = now.timeout()});
    return all;
  });
}

std::vector<Tensor> all_replicas_values(SyncGroup& group, at::ArrayRef<Tensor> local_values,
                                        std::string_view name) {
  if (!group.spans_tasks()) return local_values.vec();
  const GroupView& view = *group.view();
  std::vector<Tensor> values;
  for (const Form& form : all_forms(group, local_values, name)) values.push_back(form.make());

  // One run of bytes, in the order of replicas.
  std::vector<int64_t> bytes_each(view.replicas_of.size(), 0);
  int64_t total = 0;
  int task = 0;
  for (size_t replica = 0; replica < values.size(); ++replica) {
    while (static_cast<int>(replica) >= view.replicas_before(task + 1)) ++task;
    bytes_each[static_cast<size_t>(task)] += static_cast<int64_t>(values[replica].nbytes());
    total += static_cast<int64_t>(values[replica].nbytes());
  }
  const Tensor packed = at::empty({total}, at::dtype(at::kByte));
  auto* position = packed.data_ptr<uint8_t>();
  const auto first = static_cast<size_t>(view.first_replica());
  for (size_t replica = 0; replica < values.size(); ++replica) {
    const bool is_own = replica >= first && replica < first + local_values.size();
    if (is_own && values[replica].numel() > 0) {
      const Tensor own = internal::contiguous_elements(local_values[replica - first]);
      std::memcpy(position, own.data_ptr(), own.nbytes());
    }
    position += values[replica].nbytes();
  }
  all_gather(group.between(), bytes_of(packed), bytes_each,
             {.name = name, .timeout = group.timeout()});
  position = packed.data_ptr<uint8_t>();
  for (const Tensor& value : values) {
    if (value.numel() > 0) std::memcpy(value.data_ptr(), position, value.nbytes());
    position += value.nbytes();
  }
  return values;
}

std::vector<std::string> all_tasks_texts(SyncGroup& group, std::string_view mine,
                                         std::string_view name) {
  if (!group.spans_tasks()) return {std::string(mine)};
  const std::string encoded = group.repeatable([&](SyncGroup& now) {
    const auto own = static_cast<size_t>(now.view()->task);
    std::vector<int64_t> sizes(static_cast<size_t>(now.view()->num_tasks()), 0);
    sizes[own] = static_cast<int64_t>(mine.size());
    const std::vector<int64_t> one_each(sizes.size(), 1);
    const CallOptions options{.name = name, .timeout = now.timeout()};
    all_gather(now.between(), {sizes.data(), static_cast<int64_t>(sizes.size()), int64}, one_each,
               options);
    const int64_t before = std::accumulate(sizes.begin(), sizes.begin() + own, int64_t{0});
    const int64_t total = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
    std::string all(static_cast<size_t>(total), '\0');
    mine.copy(all.data() + before, mine.size());
    all_gather(now.between(), {all.data(), total, uint8}, sizes, options);
    sizes.insert(sizes.begin(), static_cast<int64_t>(sizes.size()));
    return all.insert(0, reinterpret_cast<const char*>(sizes.data()),
                      sizes.size() * sizeof(int64_t));
  });
  // The number of texts, their sizes, the texts.
  const auto number = [&](size_t i) {
    int64_t value = 0;
    std::memcpy(&value, encoded.data() + i * sizeof value, sizeof value);
    return static_cast<size_t>(value);
  };
  const size_t count = number(0);
  size_t position = (count + 1) * sizeof(int64_t);
  std::vector<std::string> texts;
  for (size_t i = 0; i < count; ++i) {
    texts.push_back(encoded.substr(position, number(i + 1)));
    position += texts.back().size();
  }
  return texts;
}

}  // namespace cohort::collective

#include "cohort/distribute/reduce/all_reduce_ops.h"

#include <ATen/ops/cat.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "cohort/core/observe/logging.h"
#include "cohort/distribute/reduce/reduction_to_one_device.h"
#include "cohort/distribute/values/reduction.h"

namespace cohort::distribute {
namespace {

constexpr int kLoggedWarnings = 10;
std::atomic<int> sparse_warnings{0};
const Mirrored<Tensor> kNothing{Mirrored<Tensor>::Values()};

void warn_of_sparse_value() {
  if (sparse_warnings.load() >= kLoggedWarnings || sparse_warnings++ >= kLoggedWarnings) return;
  internal::log_warning(
      "a sparse value is reduced on one device: there is no efficient all-reduce of sparse values");
}

bool is_sparse(const PerReplica<Tensor>& value) { return value.value(0).layout() == at::kSparse; }

// The values of all replicas are integers of few bits: their sums need more.
bool needs_wide_sum(const PerReplica<Tensor>& value) {
  return at::isIntegralType(value.value(0).scalar_type(), /*includeBool=*/true) &&
         value.value(0).scalar_type() != at::kLong;
}

// One tensor with the elements of all, and its parts again.
Tensor flat(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> rows;
  for (const Tensor& tensor : tensors) rows.push_back(tensor.reshape({-1}));
  return at::cat(rows);
}
std::vector<Tensor> split_like(const Tensor& elements, const std::vector<Tensor>& shapes) {
  std::vector<Tensor> parts;
  int64_t begin = 0;
  for (const Tensor& shape : shapes) {
    parts.push_back(elements.narrow(0, begin, shape.numel()).view(shape.sizes()));
    begin += shape.numel();
  }
  return parts;
}

}  // namespace

AllReduceOps::AllReduceOps(int num_packs, const char* reduction) : num_packs_(num_packs) {
  if (num_packs >= 0) return;
  throw InvalidArgumentError(
      internal::str(reduction, " requires num_packs >= 0, but ", num_packs, " is specified"));
}

Mirrored<Tensor> AllReduceOps::reduce_implementation(ReduceOp op, const PerReplica<Tensor>& value,
                                                     const Destinations& destinations) const {
  return batch_reduce_implementation(op, {{value, destinations}})[0];
}

std::vector<Mirrored<Tensor>> AllReduceOps::batch_reduce_implementation(
    ReduceOp op, const std::vector<Pair>& pairs) const {
  std::vector<Mirrored<Tensor>> reduced(pairs.size(), kNothing);
  std::vector<PerReplica<Tensor>> dense;
  std::vector<size_t> places;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto& [value, destinations] = pairs[i];
    if (is_sparse(value)) warn_of_sparse_value();
    const bool at_home = Destinations(value) == destinations;
    if (is_sparse(value) || !at_home || needs_wide_sum(value)) {
      reduced[i] = ReductionToOneDevice().reduce(op, value, destinations);
    } else {
      dense.push_back(value);
      places.push_back(i);
    }
  }
  std::vector<Mirrored<Tensor>> together = all_reduce(op, dense);
  for (size_t k = 0; k < together.size(); ++k) reduced[places[k]] = std::move(together[k]);
  return reduced;
}

// Values of one dtype and on the same devices are reduced in packs.
std::vector<Mirrored<Tensor>> AllReduceOps::all_reduce(
    ReduceOp op, const std::vector<PerReplica<Tensor>>& values) const {
  std::vector<Mirrored<Tensor>> results(values.size(), kNothing);
  for (size_t begin = 0; begin < values.size();) {
    const auto belongs = [&](size_t i) {
      return i < values.size() &&
             values[i].value(0).scalar_type() == values[begin].value(0).scalar_type() &&
             Destinations(values[i]) == Destinations(values[begin]);
    };
    size_t end = begin + 1;
    while (num_packs_ > 0 && belongs(end)) ++end;
    const size_t replicas = values[begin].size();
    std::vector<std::vector<Tensor>> chunks(replicas);  // of each replica
    std::vector<std::vector<Tensor>> own(replicas);
    for (size_t r = 0; r < replicas; ++r) {
      for (size_t i = begin; i < end; ++i) own[r].push_back(values[i].value(r));
      const Tensor pack = flat(own[r]);
      const int64_t parts = std::clamp<int64_t>(num_packs_, 1, std::max<int64_t>(pack.numel(), 1));
      chunks[r] = pack.chunk(parts);
    }
    std::vector<std::vector<Tensor>> sums(replicas);
    for (size_t c = 0; c < chunks[0].size(); ++c) {
      std::vector<Tensor> chunk;
      for (size_t r = 0; r < replicas; ++r) chunk.push_back(chunks[r][c]);
      const std::vector<Tensor> sum = all_reduce_sum(chunk);
      for (size_t r = 0; r < replicas; ++r) sums[r].push_back(sum[r]);
    }
    std::vector<Mirrored<Tensor>::Values> split(end - begin);
    for (size_t r = 0; r < replicas; ++r) {
      const std::vector<Tensor> parts = split_like(at::cat(sums[r]), own[r]);
      for (size_t i = 0; i < parts.size(); ++i) {
        split[i].push_back(op == ReduceOp::SUM
                               ? parts[i]
                               : internal::mean_of(parts[i], static_cast<int64_t>(replicas),
                                                   parts[i].scalar_type()));
      }
    }
    for (size_t i = begin; i < end; ++i) results[i] = Mirrored<Tensor>(std::move(split[i - begin]));
    begin = end;
  }
  return results;
}

HierarchicalCopyAllReduce::HierarchicalCopyAllReduce(int num_packs)
    : AllReduceOps(num_packs, "HierarchicalCopy") {}

std::vector<Tensor> HierarchicalCopyAllReduce::all_reduce_sum(
    const std::vector<Tensor>& values) const {
  const size_t half = (values.size() + 1) / 2;
  const auto sum_of = [&](size_t begin, size_t end) {
    Tensor sum = values[begin].clone();
    for (size_t i = begin + 1; i < end; ++i) sum.add_(values[i].to(sum.device()));
    return sum;
  };
  Tensor first = sum_of(0, half);
  Tensor second = half < values.size() ? sum_of(half, values.size()) : first;
  if (half < values.size()) {
    first.add_(second.to(first.device()));
    second = first.to(second.device());
  }
  std::vector<Tensor> results;
  for (size_t i = 0; i < values.size(); ++i) {
    results.push_back((i < half ? first : second).to(values[i].device()));
  }
  return results;
}

}  // namespace cohort::distribute

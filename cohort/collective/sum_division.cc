#include "cohort/collective/sum_division.h"

#include <algorithm>
#include <numeric>

#include "cohort/collective/add_in_tree.h"
#include "cohort/collective/slices.h"

namespace cohort::collective {
namespace {

template <class T>
void fill(void* out, int64_t count, T value) {
  std::fill_n(static_cast<T*>(out), count, value);
}

void fill_with_negative_zeros(void* out, int64_t count, DType dtype) {
  switch (dtype) {
    case DType::ComplexFloat:
      return fill(out, 2 * count, -0.0F);
    case DType::Float:
      return fill(out, count, -0.0F);
    case DType::ComplexDouble:
      return fill(out, 2 * count, -0.0);
    case DType::Double:
      return fill(out, count, -0.0);
    default:
      return fill(out, count * static_cast<int64_t>(c10::elementSize(dtype)), char{0});
  }
}

}  // namespace

SumDivision::SumDivision(const std::vector<int>& replicas_of, int rank)
    : rank_(static_cast<size_t>(rank)),
      tree_(std::accumulate(replicas_of.begin(), replicas_of.end(), 0)) {
  std::vector<ReplicaRange> all;
  int first = 0;
  for (const int replicas : replicas_of) {
    parts_of_.push_back(tree_.nodes_of({first, first + replicas}));
    most_parts_ = std::max(most_parts_, parts_of_.back().size());
    all.insert(all.end(), parts_of_.back().begin(), parts_of_.back().end());
    first += replicas;
  }
  additions_ = tree_.additions_of(all);
  for (const ReplicaRange& part : own_parts()) within_.push_back(tree_.additions_within(part));
}

void SumDivision::add_up_local(std::span<const void* const> local, void* parts, int64_t count,
                               DType dtype) const {
  const DType of_sums = sum_dtype(dtype);
  const auto bytes = count * static_cast<int64_t>(c10::elementSize(of_sums));
  auto* target = static_cast<char*>(parts);
  check_can_add(dtype);
  for (size_t part = 0; part < own_parts().size(); ++part) {
    const ReplicaRange range = own_replicas(part);
    const auto sources =
        local.subspan(static_cast<size_t>(range.first), static_cast<size_t>(range.size()));
    if (std::ranges::all_of(sources, [](const void* source) { return source == nullptr; })) {
      fill_with_negative_zeros(target, count, of_sums);
    } else {
      void* const place = target;
      add_in_tree({&place, 1}, sources, within_[part], count, dtype, of_sums);
    }
    target += bytes;
  }
}

}  // namespace cohort::collective

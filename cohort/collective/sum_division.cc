#include "cohort/collective/sum_division.h"

#include <c10/util/SmallVector.h>

#include <algorithm>
#include <numeric>

#include "cohort/collective/add_in_tree.h"
#include "cohort/core/error.h"

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
    case DType::Half:
      return fill(out, count, at::Half(-0.0F));
    case DType::BFloat16:
      return fill(out, count, at::BFloat16(-0.0F));
    default:
      return fill(out, count * static_cast<int64_t>(c10::elementSize(dtype)), char{0});
  }
}

}  // namespace

SumDivision::SumDivision(const std::vector<int>& replicas_of, int rank)
    : rank_(static_cast<size_t>(rank)) {
  const SumTree tree(std::accumulate(replicas_of.begin(), replicas_of.end(), 0));
  std::vector<ReplicaRange> all;
  int first = 0;
  for (const int replicas : replicas_of) {
    parts_of_.push_back(tree.nodes_of({first, first + replicas}));
    all.insert(all.end(), parts_of_.back().begin(), parts_of_.back().end());
    first += replicas;
  }
  additions_ = tree.additions_of(all);
  for (const ReplicaRange& part : own_parts()) within_.push_back(tree.additions_within(part));
}

void SumDivision::add_up_local(std::span<const void* const> local, void* parts, int64_t count,
                               DType dtype) const {
  const auto bytes = count * static_cast<int64_t>(c10::elementSize(dtype));
  auto* target = static_cast<char*>(parts);
  for (size_t part = 0; part < own_parts().size(); ++part) {
    const ReplicaRange range = own_replicas(part);
    const auto sources =
        local.subspan(static_cast<size_t>(range.first), static_cast<size_t>(range.size()));
    if (std::ranges::all_of(sources, [](const void* source) { return source == nullptr; })) {
      fill_with_negative_zeros(target, count, dtype);
    } else {
      void* const place = target;
      add_in_tree({&place, 1}, sources, within_[part], count, dtype);
    }
    target += bytes;
  }
}

void SumDivision::add_up_tasks(Communicator& communicator, const void* parts, void* out,
                               int64_t count, DType dtype, GatheredBytes& gathered,
                               const CallOptions& options) const {
  const auto bytes = static_cast<size_t>(count) * c10::elementSize(dtype);
  c10::SmallVector<const void*, 16> sources;
  const auto use = [&](const void* of_task, size_t num_parts) {
    for (size_t part = 0; part < num_parts; ++part) {
      sources.push_back(static_cast<const char*>(of_task) + part * bytes);
    }
  };
  if (num_tasks() == 1) {
    use(parts, own_parts().size());
  } else {
    const std::span mine(static_cast<const char*>(parts), own_parts().size() * bytes);
    communicator.gather_bytes(mine, gathered, options);
    for (size_t task = 0; task < num_tasks(); ++task) {
      const std::span<const char> theirs = gathered.of(static_cast<int>(task));
      const size_t expected = num_parts(static_cast<int>(task)) * bytes;
      if (theirs.size() != expected) {
        throw DataLossError(internal::str(communicator.task_name(static_cast<int>(task)), " sent ",
                                          theirs.size(), " bytes for '", options.name,
                                          "', where its replicas need ", expected));
      }
      use(theirs.data(), num_parts(static_cast<int>(task)));
    }
  }
  void* const target = out;
  add_in_tree({&target, 1}, {sources.data(), sources.size()}, additions_, count, dtype);
}

void SumDivision::add_up_gathered(const void* all_parts, void* out, int64_t count,
                                  DType dtype) const {
  const auto bytes = static_cast<size_t>(count) * c10::elementSize(dtype);
  c10::SmallVector<const void*, 16> sources;
  for (size_t part = 0; part < additions_.size(); ++part) {
    sources.push_back(static_cast<const char*>(all_parts) + part * bytes);
  }
  void* const target = out;
  add_in_tree({&target, 1}, {sources.data(), sources.size()}, additions_, count, dtype);
}

}  // namespace cohort::collective

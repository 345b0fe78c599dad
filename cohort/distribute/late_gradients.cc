#include "cohort/distribute/late_gradients.h"

#include <ATen/ops/from_blob.h>
#include <c10/util/accumulate.h>

#include <cstring>
#include <numeric>
#include <utility>

#include "cohort/core/phase.h"
#include "cohort/distribute/variable_impl.h"

namespace cohort::internal {
namespace {

// A task's rows begin where numbers of any dtype may.
int64_t padded(int64_t bytes) { return (bytes + 7) / 8 * 8; }

int64_t ids_bytes(int64_t rows) { return rows * static_cast<int64_t>(sizeof(int64_t)); }

}  // namespace

void LateGradients::use(const std::vector<size_t>& variables, std::string signature) {
  signature_ = std::move(signature);
  sums_.clear();
  for (const size_t variable : variables) sums_.emplace_back().variable = variable;
  own_rows_.resize(sums_.size());
}

int64_t LateGradients::row_size(const Sum& sum) const {
  const auto& shape = variable_of(sum).shape();
  return c10::multiply_integers(shape.begin() + 1, shape.end());
}

int64_t LateGradients::row_bytes(const Sum& sum) const {
  return row_size(sum) * static_cast<int64_t>(c10::elementSize(variable_of(sum).dtype()));
}

void LateGradients::agree(Contributions local) {
  if (sums_.empty()) return;
  const auto tasks = static_cast<size_t>(group_.view()->num_tasks());
  statuses_.assign(tasks * sums_.size(), {});
  Status* const own = statuses_.data() + static_cast<size_t>(group_.view()->task) * sums_.size();
  for (size_t i = 0; i < sums_.size(); ++i) own[i] = local_status(sums_[i], local);

  constexpr int64_t kNumbers = sizeof(Status) / sizeof(int64_t);
  const int64_t part = kNumbers * static_cast<int64_t>(sums_.size());
  parts_.assign(tasks, part);
  collective::all_gather(
      group_.between(), {statuses_.data(), part * static_cast<int64_t>(tasks), int64}, parts_,
      {.name = "which gradients there are", .signature = signature_, .timeout = group_.timeout()});
  for (size_t i = 0; i < sums_.size(); ++i) {
    sums_[i].count = {};
    for (size_t task = 0; task < tasks; ++task) {
      sums_[i].count.present += status(static_cast<int>(task), i).present;
      sums_[i].count.sparse += status(static_cast<int>(task), i).sparse;
    }
  }
}

// Also adds up this task's rows.
LateGradients::Status LateGradients::local_status(Sum& sum, Contributions local) {
  const ScopedPhase phase(profiler::Phase::kReduce);
  Status status;
  SparseRowSum rows;
  for (size_t r = 0; r < local.size(); ++r) {
    const Contribution& replica = of_replica(local, r);
    const Tensor& gradient = replica.gradients[sum.variable];
    if (!gradient.defined()) continue;
    ++status.present;
    if (gradient.layout() == at::kStrided) continue;
    ++status.sparse;
    rows.add(replica.sparse[sum.variable]);
  }
  MergedRows& own = own_rows_[static_cast<size_t>(&sum - sums_.data())];
  own.ids.clear();
  own.values.clear();
  if (status.present > 0 && status.sparse == status.present) {
    own.take_all(rows, row_size(sum), variable_of(sum).dtype());
  }
  status.rows = static_cast<int64_t>(own.ids.size());
  return status;
}

void LateGradients::exchange(const TaskPacks& packs) {
  exchange_rows();
  for (Sum& sum : sums_) {
    const bool dense = sum.count.present > sum.count.sparse;
    if (dense && !packs.contains(sum.variable)) exchange_dense(sum);
  }
}

int64_t LateGradients::bytes_of_rows(int task) const {
  int64_t bytes = 0;
  for (size_t i = 0; i < sums_.size(); ++i) {
    if (!sums_[i].is_rows()) continue;
    const int64_t rows = status(task, i).rows;
    bytes += ids_bytes(rows) + padded(rows * row_bytes(sums_[i]));
  }
  return bytes;
}

void LateGradients::exchange_rows() {
  const int tasks = group_.view()->num_tasks();
  parts_.clear();
  for (int task = 0; task < tasks; ++task) parts_.push_back(bytes_of_rows(task));
  const int64_t total = std::accumulate(parts_.begin(), parts_.end(), int64_t{0});
  if (rows_memory_.bytes() < total) rows_memory_ = group_.buffers().take(total + total / 2);
  if (total > 0) {
    const int own = group_.view()->task;
    write_rows(std::accumulate(parts_.begin(), parts_.begin() + own, rows_memory_.data()));
    collective::all_gather(
        group_.between(), {rows_memory_.data(), total, uint8}, parts_,
        {.name = "rows of sparse gradients", .signature = signature_, .timeout = group_.timeout()});
  }
  merge_rows(rows_memory_.data());
}

// For each variable its ids, then its values.
void LateGradients::write_rows(char* out) const {
  for (size_t i = 0; i < sums_.size(); ++i) {
    if (!sums_[i].is_rows()) continue;
    const MergedRows& own = own_rows_[i];
    const auto id_bytes = static_cast<size_t>(ids_bytes(static_cast<int64_t>(own.ids.size())));
    std::memcpy(out, own.ids.data(), id_bytes);
    std::memcpy(out + id_bytes, own.values.data(), own.values.size());
    out += static_cast<int64_t>(id_bytes) + padded(static_cast<int64_t>(own.values.size()));
  }
}

void LateGradients::merge_rows(const char* all_tasks) {
  const ScopedPhase phase(profiler::Phase::kReduce);
  const int tasks = group_.view()->num_tasks();
  std::vector<const char*> next;  // of each task
  for (int task = 0; task < tasks; ++task) {
    next.push_back(all_tasks);
    all_tasks += parts_[static_cast<size_t>(task)];
  }
  for (size_t i = 0; i < sums_.size(); ++i) {
    Sum& sum = sums_[i];
    if (!sum.is_rows()) continue;
    const int64_t bytes = row_bytes(sum);
    std::vector<SparseRows> of_tasks;
    for (int task = 0; task < tasks; ++task) {
      const int64_t rows = status(task, i).rows;
      const char*& at = next[static_cast<size_t>(task)];
      const auto* ids = reinterpret_cast<const int64_t*>(at);
      of_tasks.emplace_back(std::span(ids, static_cast<size_t>(rows)), at + ids_bytes(rows), bytes);
      at += ids_bytes(rows) + padded(rows * bytes);
    }
    SparseRowSum rows;
    for (const SparseRows& one : of_tasks) rows.add(one);
    sum.rows.take_all(rows, row_size(sum), variable_of(sum).dtype());
    sum.in_order = SparseRows(sum.rows.ids, sum.rows.values.data(), bytes);
  }
}

void LateGradients::exchange_dense(Sum& sum) {
  const distribute::Variable& variable = variable_of(sum);
  const int64_t size = c10::multiply_integers(variable.shape());
  const DType dtype = variable.dtype();
  const int64_t bytes = size * static_cast<int64_t>(c10::elementSize(dtype));
  if (sum.memory.bytes() < bytes) sum.memory = group_.buffers().take(bytes);
  add_up_local(gradients_, sum.variable, sum.memory.data(), size, dtype);
  collective::all_reduce(
      group_.between(), {sum.memory.data(), size, dtype},
      {.name = variable.name(), .signature = signature_, .timeout = group_.timeout()});
  sum.dense = at::from_blob(sum.memory.data(), size, at::dtype(dtype));
}

}  // namespace cohort::internal

#include "cohort/distribute/gradients/late_gradients.h"

#include <ATen/ops/from_blob.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "cohort/core/profiler/phase.h"
#include "cohort/distribute/variables/variable_impl.h"

namespace cohort::internal {
namespace {

constexpr int64_t kCacheLine = 64;

// The places of the parts of a task's message: its statuses, then for each variable with rows their
// ids and their values. Every part begins with a cache line.
class Places {
 public:
  int64_t next(int64_t bytes) {
    const int64_t place = end_;
    end_ += (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
    return place;
  }
  int64_t end() const { return end_; }

 private:
  int64_t end_ = 0;
};

int64_t ids_bytes(int64_t rows) { return rows * static_cast<int64_t>(sizeof(int64_t)); }

}  // namespace

// A slower task may be reading what this one wrote in its last step.
LateGradients::~LateGradients() {
  for (collective::BufferPool::Piece& piece : written_) {
    group_.buffers().set_aside(std::move(piece));
  }
}

void LateGradients::use(const std::vector<size_t>& variables, std::string signature) {
  signature_ = std::move(signature);
  sums_.clear();
  for (const size_t variable : variables) {
    Sum& sum = sums_.emplace_back();
    sum.variable = variable;
    sum.of_tasks.resize(static_cast<size_t>(group_.view()->num_tasks()));
  }
}

int64_t LateGradients::num_rows(const Sum& sum) const {
  const auto& shape = variable_of(sum).shape();
  return shape.size() > 1 ? shape[0] : 0;
}

int64_t LateGradients::row_size(const Sum& sum) const {
  const auto& shape = variable_of(sum).shape();
  return c10::multiply_integers(shape.begin() + 1, shape.end());
}

int64_t LateGradients::row_bytes(const Sum& sum) const {
  return row_size(sum) * static_cast<int64_t>(c10::elementSize(variable_of(sum).dtype()));
}

LateGradients::Status LateGradients::status_of(const Sum& sum, Contributions local) const {
  Status status;
  for (size_t r = 0; r < local.size(); ++r) {
    const Tensor& gradient = of_replica(local, r).gradients[sum.variable];
    if (!gradient.defined()) continue;
    ++status.present;
    if (gradient.layout() != at::kStrided) ++status.sparse;
  }
  return status;
}

void LateGradients::agree(Contributions local) {
  if (sums_.empty()) return;
  const auto tasks = static_cast<size_t>(group_.view()->num_tasks());
  const auto own = static_cast<size_t>(group_.view()->task);
  std::vector<Status> statuses(tasks * sums_.size());
  for (size_t i = 0; i < sums_.size(); ++i) {
    statuses[own * sums_.size() + i] = status_of(sums_[i], local);
  }
  constexpr int64_t kNumbers = sizeof(Status) / sizeof(int64_t);
  const int64_t part = kNumbers * static_cast<int64_t>(sums_.size());
  const std::vector<int64_t> parts(tasks, part);
  collective::all_gather(
      group_.between(), {statuses.data(), part * static_cast<int64_t>(tasks), int64}, parts,
      {.name = "which gradients there are", .signature = signature_, .timeout = group_.timeout()});
  for (Sum& sum : sums_) sum.count = {};
  for (size_t task = 0; task < tasks; ++task) {
    count(std::span(statuses).subspan(task * sums_.size(), sums_.size()));
  }
}

void LateGradients::count(std::span<const Status> of_task) {
  for (size_t i = 0; i < sums_.size(); ++i) {
    sums_[i].count.present += of_task[i].present;
    sums_[i].count.sparse += of_task[i].sparse;
  }
}

void LateGradients::collect_rows(const Sum& sum, Contributions local) {
  row_sum_.clear();
  for (size_t r = 0; r < local.size(); ++r) {
    const Contribution& replica = of_replica(local, r);
    if (replica.gradients[sum.variable].defined()) row_sum_.add(replica.sparse[sum.variable]);
  }
}

// Before rows of the same id are added up.
int64_t LateGradients::most_bytes(Contributions local) {
  Places places;
  places.next(static_cast<int64_t>(sums_.size() * sizeof(Status)));
  for (const Sum& sum : sums_) {
    if (!status_of(sum, local).has_rows()) continue;
    collect_rows(sum, local);
    places.next(ids_bytes(row_sum_.num_rows()));
    places.next(row_sum_.num_rows() * row_bytes(sum));
  }
  return places.end();
}

void LateGradients::write(Contributions local) {
  if (sums_.empty()) return;
  const ScopedPhase phase(profiler::Phase::kReduce);
  collective::BufferPool::Piece& piece = written_[turn_++ % 2];
  const int64_t most = most_bytes(local);
  if (piece.bytes() < most) piece = group_.buffers().take(most + most / 2);
  char* const message = piece.data();
  auto* const statuses = reinterpret_cast<Status*>(message);
  Places places;
  places.next(static_cast<int64_t>(sums_.size() * sizeof(Status)));
  for (size_t i = 0; i < sums_.size(); ++i) {
    const Sum& sum = sums_[i];
    statuses[i] = status_of(sum, local);
    if (!statuses[i].has_rows()) continue;
    collect_rows(sum, local);
    auto* const ids = reinterpret_cast<int64_t*>(message + places.end());
    const int64_t rows = row_sum_.write_ids(ids);
    statuses[i].rows = rows;
    places.next(ids_bytes(rows));
    scratch_.resize(std::max(scratch_.size(), static_cast<size_t>(row_bytes(sum))));
    char* const values = message + places.next(rows * row_bytes(sum));
    row_sum_.take_all(row_size(sum), variable_of(sum).dtype(), values, scratch_.data());
  }
  message_ = {message, static_cast<size_t>(places.end())};
}

void LateGradients::exchange(const TaskBuckets& buckets) {
  if (sums_.empty()) return;
  // Every task comes here when it has read the rows of the step before, whether or not this object
  // exchanged them.
  const std::vector<collective::BufferPool::Piece> read = group_.buffers().take_set_aside();
  group_.between().gather_bytes(message_, gathered_,
                                {.name = "sparse gradients and those that are new",
                                 .signature = signature_,
                                 .timeout = group_.timeout()});
  const int tasks = group_.view()->num_tasks();
  for (Sum& sum : sums_) sum.count = {};
  for (int task = 0; task < tasks; ++task) count(statuses_of(task));
  for (int task = 0; task < tasks; ++task) read_rows(task);
  for (Sum& sum : sums_) {
    const bool dense = sum.count.present > sum.count.sparse;
    if (dense && !buckets.contains(sum.variable)) exchange_dense(sum);
  }
}

std::span<const LateGradients::Status> LateGradients::statuses_of(int task) const {
  const std::span<const char> message = gathered_.of(task);
  Places places;
  places.next(static_cast<int64_t>(sums_.size() * sizeof(Status)));
  const bool has_statuses = static_cast<int64_t>(message.size()) >= places.end();
  const std::span statuses(reinterpret_cast<const Status*>(message.data()),
                           has_statuses ? sums_.size() : 0);
  for (size_t i = 0; i < statuses.size(); ++i) {
    if (!statuses[i].has_rows()) continue;
    const int64_t rows = statuses[i].rows;
    const bool has_rows = variable_of(sums_[i]).shape().size() > 1;
    if (!has_rows || rows < 0 || rows > num_rows(sums_[i])) {
      throw DataLossError(str("task ", task, " sent ", rows, " rows of '",
                              variable_of(sums_[i]).name(), "', which has ", num_rows(sums_[i])));
    }
    places.next(ids_bytes(rows));
    places.next(rows * row_bytes(sums_[i]));
  }
  if (static_cast<int64_t>(message.size()) == places.end()) return statuses;
  throw DataLossError(str("task ", task, " sent ", message.size(),
                          " bytes of sparse gradients, where its counts say ", places.end()));
}

void LateGradients::read_rows(int task) {
  const std::span<const Status> statuses = statuses_of(task);
  const char* const message = gathered_.of(task).data();
  Places places;
  places.next(static_cast<int64_t>(sums_.size() * sizeof(Status)));
  for (size_t i = 0; i < sums_.size(); ++i) {
    SparseRows& rows = sums_[i].of_tasks[static_cast<size_t>(task)];
    if (!statuses[i].has_rows()) {
      rows.clear();
      continue;
    }
    const int64_t count = statuses[i].rows, bytes = row_bytes(sums_[i]);
    const auto* ids = reinterpret_cast<const int64_t*>(message + places.next(ids_bytes(count)));
    const char* const values = message + places.next(count * bytes);
    rows.assign(std::span(ids, static_cast<size_t>(count)), values, bytes);
    check_rows(task, sums_[i]);
  }
}

// The sum and the rule write to the places that the ids name.
void LateGradients::check_rows(int task, const Sum& sum) const {
  int64_t last = -1;
  for (const SparseRows::Row& row : sum.of_tasks[static_cast<size_t>(task)].rows()) {
    if (row.id <= last || row.id >= num_rows(sum)) {
      throw DataLossError(str("task ", task, " sent row ", row.id, " of '", variable_of(sum).name(),
                              "', which has ", num_rows(sum), ", after row ", last));
    }
    last = row.id;
  }
}

void LateGradients::merge(Sum& sum) {
  const ScopedPhase phase(profiler::Phase::kReduce);
  row_sum_.clear();
  for (const SparseRows& rows : sum.of_tasks) row_sum_.add(rows);
  sum.merged.take_all(row_sum_, row_size(sum), variable_of(sum).dtype());
  sum.in_order.assign(sum.merged.ids, sum.merged.values.data(), row_bytes(sum));
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

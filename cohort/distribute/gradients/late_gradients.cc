#include "cohort/distribute/gradients/late_gradients.h"

#include <ATen/ops/from_blob.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <cstring>
#include <numeric>
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

LateGradients::LateGradients(const std::vector<distribute::Variable>& all,
                             const ReplicaGradients& gradients, collective::SyncGroup& group)
    : all_(all),
      gradients_(gradients),
      group_(group),
      division_(group.view()->division),
      gathered_(group.buffers()) {
  for (int task = 0; task < group.view()->num_tasks(); ++task) {
    num_parts_.push_back(division_ ? division_->num_parts(task) : 1);
  }
}

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
    sum.of_parts.resize(std::accumulate(num_parts_.begin(), num_parts_.end(), size_t{0}));
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

void LateGradients::count(std::span<const Status> of_part) {
  for (size_t i = 0; i < sums_.size(); ++i) {
    sums_[i].count.present += of_part[i].present;
    sums_[i].count.sparse += of_part[i].sparse;
  }
}

Contributions LateGradients::of_own_part(Contributions local, size_t part) const {
  if (division_ == nullptr) return local;
  const collective::ReplicaRange range = division_->own_replicas(part);
  return local.subspan(static_cast<size_t>(range.first), static_cast<size_t>(range.size()));
}

void LateGradients::collect_rows(const Sum& sum, Contributions local, size_t part) {
  row_sum_.clear();
  for (size_t r = 0; r < local.size(); ++r) {
    static const SparseRows kNone;
    const Contribution& replica = of_replica(local, r);
    const bool has_rows = replica.gradients[sum.variable].defined();
    // In a tree every replica has its place.
    if (has_rows || division_) row_sum_.add(has_rows ? replica.sparse[sum.variable] : kNone);
  }
  if (division_) row_sum_.add_as(&division_->additions_within(part));
}

// Before rows of the same id are added up.
int64_t LateGradients::most_bytes(Contributions local) {
  Places places;
  for (size_t part = 0; part < num_own_parts(); ++part) {
    const Contributions replicas = of_own_part(local, part);
    places.next(static_cast<int64_t>(sums_.size() * sizeof(Status)));
    for (const Sum& sum : sums_) {
      if (!status_of(sum, replicas).has_rows()) continue;
      collect_rows(sum, replicas, part);
      places.next(ids_bytes(row_sum_.num_rows()));
      places.next(row_sum_.num_rows() * row_bytes(sum));
    }
  }
  return places.end();
}

void LateGradients::write(Contributions local) {
  if (sums_.empty()) return;
  const ScopedPhase phase(profiler::Phase::kReduce);
  collective::BufferPool::Piece& piece = written_[turn_++ % 2];
  const int64_t most = most_bytes(local);
  if (piece.bytes() < most) piece = group_.buffers().take(most + most / 2);
  int64_t bytes = 0;
  for (size_t part = 0; part < num_own_parts(); ++part) {
    bytes += write_part(piece.data() + bytes, of_own_part(local, part), part);
  }
  message_ = {piece.data(), static_cast<size_t>(bytes)};
}

int64_t LateGradients::write_part(char* message, Contributions local, size_t part) {
  auto* const statuses = reinterpret_cast<Status*>(message);
  Places places;
  places.next(static_cast<int64_t>(sums_.size() * sizeof(Status)));
  for (size_t i = 0; i < sums_.size(); ++i) {
    const Sum& sum = sums_[i];
    statuses[i] = status_of(sum, local);
    if (!statuses[i].has_rows()) continue;
    collect_rows(sum, local, part);
    auto* const ids = reinterpret_cast<int64_t*>(message + places.end());
    const int64_t rows = row_sum_.write_ids(ids);
    statuses[i].rows = rows;
    places.next(ids_bytes(rows));
    scratch_.resize(std::max(scratch_.size(), static_cast<size_t>(row_bytes(sum))));
    char* const values = message + places.next(rows * row_bytes(sum));
    row_sum_.take_all(row_size(sum), variable_of(sum).dtype(), values, scratch_.data());
  }
  return places.end();
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
  for (Sum& sum : sums_) sum.count = {};
  for (int task = 0; task < group_.view()->num_tasks(); ++task) read_message(task);
  for (Sum& sum : sums_) {
    const bool dense = sum.count.present > sum.count.sparse;
    if (dense && !buckets.contains(sum.variable)) exchange_dense(sum);
  }
}

void LateGradients::read_message(int task) {
  const auto parts = num_parts_.begin();
  size_t part = std::accumulate(parts, parts + task, size_t{0});
  const std::span<const char> message = gathered_.of(task);
  size_t read = 0;
  for (size_t i = 0; i < num_parts_[static_cast<size_t>(task)]; ++i, ++part) {
    read += read_part(task, message.subspan(read), part);
  }
  if (read == message.size()) return;
  throw DataLossError(str("task ", task, " sent ", message.size(),
                          " bytes of sparse gradients, where its counts say ", read));
}

size_t LateGradients::read_part(int task, std::span<const char> message, size_t part) {
  Places places;
  const auto check = [&] {
    if (static_cast<int64_t>(message.size()) >= places.end()) return;
    throw DataLossError(str("task ", task, " sent ", message.size(),
                            " bytes of sparse gradients, where its counts say at least ",
                            places.end()));
  };
  places.next(static_cast<int64_t>(sums_.size() * sizeof(Status)));
  check();
  const std::span statuses(reinterpret_cast<const Status*>(message.data()), sums_.size());
  count(statuses);
  for (size_t i = 0; i < sums_.size(); ++i) {
    Sum& sum = sums_[i];
    SparseRows& rows = sum.of_parts[part];
    if (!statuses[i].has_rows()) {
      rows.clear();
      continue;
    }
    const int64_t count = statuses[i].rows;
    if (variable_of(sum).shape().size() < 2 || count < 0 || count > num_rows(sum)) {
      throw DataLossError(str("task ", task, " sent ", count, " rows of '", variable_of(sum).name(),
                              "', which has ", num_rows(sum)));
    }
    const int64_t ids = places.next(ids_bytes(count));
    const int64_t values = places.next(count * row_bytes(sum));
    check();
    rows.assign(std::span(reinterpret_cast<const int64_t*>(message.data() + ids),
                          static_cast<size_t>(count)),
                message.data() + values, row_bytes(sum));
    check_rows(task, sum, part);
  }
  return static_cast<size_t>(places.end());
}

// The sum and the rule write to the places that the ids name.
void LateGradients::check_rows(int task, const Sum& sum, size_t part) const {
  int64_t last = -1;
  for (const SparseRows::Row& row : sum.of_parts[part].rows()) {
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
  for (const SparseRows& rows : sum.of_parts) row_sum_.add(rows);
  if (division_) row_sum_.add_as(&division_->additions());
  sum.merged.take_all(row_sum_, row_size(sum), variable_of(sum).dtype());
  sum.in_order.assign(sum.merged.ids, sum.merged.values.data(), row_bytes(sum));
}

void LateGradients::exchange_dense(Sum& sum) {
  const distribute::Variable& variable = variable_of(sum);
  const int64_t size = c10::multiply_integers(variable.shape());
  const DType dtype = variable.dtype();
  const int64_t bytes = size * static_cast<int64_t>(c10::elementSize(dtype));
  const auto needed = static_cast<int64_t>(num_own_parts()) * bytes;
  if (sum.memory.bytes() < needed) sum.memory = group_.buffers().take(needed);
  const collective::CallOptions options{
      .name = variable.name(), .signature = signature_, .timeout = group_.timeout()};
  if (division_) {
    for (size_t part = 0; part < num_own_parts(); ++part) {
      add_up_local(gradients_, division_->own_replicas(part), &division_->additions_within(part),
                   sum.variable, sum.memory.data() + static_cast<int64_t>(part) * bytes, size,
                   dtype);
    }
    group_.between().all_reduce_parts({sum.memory.data(), size, dtype}, options);
  } else {
    const auto replicas = static_cast<int>(gradients_.num_replicas());
    add_up_local(gradients_, {0, replicas}, nullptr, sum.variable, sum.memory.data(), size, dtype);
    collective::all_reduce(group_.between(), {sum.memory.data(), size, dtype}, options);
  }
  sum.dense = at::from_blob(sum.memory.data(), size, at::dtype(dtype));
}

}  // namespace cohort::internal

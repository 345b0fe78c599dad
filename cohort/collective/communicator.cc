#include "cohort/collective/communicator.h"

#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "cohort/collective/add_in_tree.h"
#include "cohort/collective/gathered_bytes.h"
#include "cohort/collective/slices.h"
#include "cohort/collective/sum_division.h"
#include "cohort/core/threads/bounded_wait.h"

namespace cohort::collective {
namespace {

class DoneWork final : public Work {
 public:
  void wait(Deadline) override {}
  void order_after(c10::Stream) override {}
};

Deadline deadline_of(const CallOptions& options) {
  return std::chrono::steady_clock::now() + internal::bounded_wait(options.timeout);
}

}  // namespace

std::unique_ptr<Work> done_work() { return std::make_unique<DoneWork>(); }

std::string Communicator::task_name(int rank) const { return internal::str("task ", rank); }

void Communicator::use_division(std::shared_ptr<const SumDivision> division) {
  division_ = std::move(division);
}

// Every task gets all parts and adds up the whole tree.
void Communicator::all_reduce_parts(const Buffer& parts, const CallOptions& options) {
  check_can_add(parts.dtype);
  if (size() == 1) return;  // the only part
  std::vector<int64_t> counts;
  int64_t before = 0, total = 0;
  for (int task = 0; task < size(); ++task) {
    if (task == rank()) before = total;
    counts.push_back(static_cast<int64_t>(division_->num_parts(task)) * parts.count);
    total += counts.back();
  }
  const auto item = static_cast<int64_t>(c10::elementSize(parts.dtype));
  gathered_parts_.resize(static_cast<size_t>(total * item));
  const Buffer all{gathered_parts_.data(), total, parts.dtype};
  if (total > 0) {
    const auto own = static_cast<size_t>(counts[static_cast<size_t>(rank())] * item);
    std::memcpy(all.at(before), parts.data, own);
  }
  collective::all_gather(*this, all, counts, options);
  std::vector<const void*> sources;
  for (size_t part = 0; part < division_->additions().size(); ++part) {
    sources.push_back(all.at(static_cast<int64_t>(part) * parts.count));
  }
  add_in_tree({&parts.data, 1}, sources, division_->additions(), parts.count, parts.dtype);
}

// Makes two calls: how many bytes there are, then the bytes.
void Communicator::gather_bytes(std::span<const char> mine, GatheredBytes& all,
                                const CallOptions& options) {
  const auto tasks = static_cast<size_t>(size());
  const auto own = static_cast<size_t>(rank());
  std::vector<int64_t> counts(tasks, 0);
  counts[own] = static_cast<int64_t>(mine.size());
  const std::vector<int64_t> one_each(tasks, 1);
  collective::all_gather(*this, {counts.data(), static_cast<int64_t>(tasks), int64}, one_each,
                         options);
  const int64_t total = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  char* next = all.memory(total);
  const Buffer values{next, total, uint8};
  all.parts().resize(tasks);
  for (size_t task = 0; task < tasks; ++task) {
    if (task == own && !mine.empty()) std::memcpy(next, mine.data(), mine.size());
    all.parts()[task] = {next, static_cast<size_t>(counts[task])};
    next += counts[task];
  }
  if (total == 0) return;
  CallOptions agreed = options;  // the tasks have compared it
  agreed.fingerprint = 0;
  collective::all_gather(*this, values, counts, agreed);
}

std::exception_ptr given_up(const std::string& task, const std::exception_ptr& reason) {
  const internal::ErrorRecord record = internal::record_error(reason);
  if (!record.task.empty() && record.task != task) return reason;
  return internal::make_error(record.code, internal::str(task, " has given up: ", record.message),
                              record.task);
}

void all_reduce(Communicator& communicator, const Buffer& buffer, const CallOptions& options) {
  const Deadline deadline = deadline_of(options);
  communicator.all_reduce({&buffer, 1}, options)->wait(deadline);
}

void all_gather(Communicator& communicator, const Buffer& buffer, std::span<const int64_t> counts,
                const CallOptions& options) {
  const Deadline deadline = deadline_of(options);
  communicator.all_gather({&buffer, 1}, counts, options)->wait(deadline);
}

void broadcast(Communicator& communicator, const Buffer& buffer, int root,
               const CallOptions& options) {
  const Deadline deadline = deadline_of(options);
  communicator.broadcast({&buffer, 1}, root, options)->wait(deadline);
}

}  // namespace cohort::collective

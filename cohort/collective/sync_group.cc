#include "cohort/collective/sync_group.h"

#include <algorithm>
#include <string>

#include "cohort/collective/call_timeout.h"
#include "cohort/collective/sole_communicator.h"
#include "cohort/collective/sum_division.h"
#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"

namespace cohort::collective {
namespace {

std::shared_ptr<const GroupView> introduce(Communicator& communicator, int local_replicas,
                                           SyncGroup::Order order) {
  const auto tasks = static_cast<size_t>(communicator.size());
  const auto rank = static_cast<size_t>(communicator.rank());
  std::vector<int> replicas(tasks, 0);
  replicas[rank] = local_replicas;
  const std::vector<int64_t> one_each(tasks, 1);
  all_gather(communicator, {replicas.data(), static_cast<int64_t>(tasks), int32}, one_each,
             {.name = "number of replicas"});
  GroupView view{.generation = communicator.generation(),
                 .task = communicator.rank(),
                 .replicas_of = std::move(replicas)};
  if (order == SyncGroup::Order::kOfTree) {
    view.division = std::make_shared<const SumDivision>(view.replicas_of, view.task);
    communicator.use_division(view.division);
  }
  return std::make_shared<const GroupView>(std::move(view));
}

// The time limit that the program has set for the calls of this thread; 0: none.
std::chrono::nanoseconds limit_of_call(std::chrono::nanoseconds most) {
  return std::min(ScopedCallTimeout::current(), most);
}

}  // namespace

SyncGroup::SyncGroup(int local_replicas, std::chrono::nanoseconds spin,
                     std::shared_ptr<Communicator> communicator, Order order)
    : communicator_(
          checked(communicator ? std::move(communicator) : std::make_shared<SoleCommunicator>())),
      buffers_(*communicator_),
      communication_(new CommunicationThread(*communicator_)),
      view_(introduce(*communicator_, local_replicas, order)),
      threads_(local_replicas, spin, {.first = view_->first_replica()}) {}

void SyncGroup::begin(const RoundOptions& options) {
  threads_.begin(options);
  communicator_->begin_step();
  timeout_ = options.timeout;
}

std::chrono::nanoseconds SyncGroup::timeout() const {
  const std::chrono::nanoseconds of_call = limit_of_call(timeout_);
  return of_call.count() > 0 ? of_call : timeout_;
}

// All have made the same call where all of them fail alike; each has its own error.
void SyncGroup::tell_of_failure(std::string_view what, uint64_t calls,
                                const std::exception_ptr& error) {
  try {
    if (calls_made() != calls) return;
    const std::string name = internal::str(what, " that failed");
    const std::string why = internal::record_error(error).message;
    internal::log_warning(
        what, " has failed on this task, which tells the others when they come to it: ", why);
    between().barrier({.name = name, .signature = why, .timeout = timeout()});
  } catch (const std::exception&) {  // they differ, or will not come
  }
}

void SyncGroup::meet(int local_replica, const char* what, void* mine,
                     FunctionRef<void(std::span<void* const>)> leader) {
  if (threads_.size() == 1) return leader({&mine, 1});
  threads_.meet(local_replica, what, mine, leader, limit_of_call(timeout_));
}

void SyncGroup::share(int local_replica, const char* what, void* mine,
                      FunctionRef<void(std::span<void* const>)> check,
                      FunctionRef<void(std::span<void* const>)> work) {
  if (threads_.size() > 1) {
    return threads_.share(local_replica, what, mine, check, work, limit_of_call(timeout_));
  }
  check({&mine, 1});
  work({&mine, 1});
}

}  // namespace cohort::collective

#include "cohort/collective/communicator.h"

namespace cohort::collective {
namespace {

class DoneWork final : public Work {
 public:
  void wait(Deadline) override {}
  void order_after(c10::Stream) override {}
};

Deadline deadline_of(const CallOptions& options) {
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<Deadline::duration>(options.timeout);
}

}  // namespace

std::unique_ptr<Work> done_work() { return std::make_unique<DoneWork>(); }

std::string Communicator::task_name(int rank) const { return internal::str("task ", rank); }

std::exception_ptr given_up(const std::string& task, const std::exception_ptr& reason) {
  const internal::ErrorRecord record = internal::record_error(reason);
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

#include "cohort/collective/sole_communicator.h"

#include <cstring>

#include "cohort/collective/local_buffers.h"

namespace cohort::collective {

Buffer SoleCommunicator::buffer(int64_t bytes) {
  std::lock_guard lock(mutex_);
  memory_.push_back(std::make_unique<char[]>(static_cast<size_t>(bytes)));
  return {memory_.back().get(), bytes, uint8};
}

std::unique_ptr<Work> SoleCommunicator::all_reduce(std::span<const Buffer> buffers,
                                                   const CallOptions&) {
  fold_buffers(buffers);
  copy_to_others(buffers, 0, buffers[0].count);
  return done_work();
}

std::unique_ptr<Work> SoleCommunicator::reduce_scatter(std::span<const Buffer> buffers,
                                                       std::span<const int64_t>,
                                                       const CallOptions& options) {
  return all_reduce(buffers, options);
}

std::unique_ptr<Work> SoleCommunicator::all_gather(std::span<const Buffer> buffers,
                                                   std::span<const int64_t>, const CallOptions&) {
  copy_to_others(buffers, 0, buffers[0].count);
  return done_work();
}

std::unique_ptr<Work> SoleCommunicator::broadcast(std::span<const Buffer> buffers, int,
                                                  const CallOptions&) {
  copy_to_others(buffers, 0, buffers[0].count);
  return done_work();
}

}  // namespace cohort::collective

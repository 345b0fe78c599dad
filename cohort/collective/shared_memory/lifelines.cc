#include "cohort/collective/shared_memory/lifelines.h"

#include <poll.h>

namespace cohort::collective::shared_memory {

std::vector<int> Lifelines::lost(int except) const {
  std::vector<pollfd> ends;
  ends.reserve(others_.size());
  for (const internal::UniqueFd& fd : others_) ends.push_back({fd.get(), 0, 0});
  std::vector<int> ranks;
  if (::poll(ends.data(), ends.size(), 0) <= 0) return ranks;
  for (size_t rank = 0; rank < ends.size(); ++rank) {
    if ((ends[rank].revents & (POLLHUP | POLLERR)) != 0 && static_cast<int>(rank) != except) {
      ranks.push_back(static_cast<int>(rank));
    }
  }
  return ranks;
}

}  // namespace cohort::collective::shared_memory

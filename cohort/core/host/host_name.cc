#include "cohort/core/host/host_name.h"

#include <unistd.h>

#include <array>

namespace cohort::internal {

std::string host_name() {
  std::array<char, 256> name{};
  const bool is_known = gethostname(name.data(), name.size() - 1) == 0;
  return is_known ? name.data() : "unknown-host";
}

}  // namespace cohort::internal

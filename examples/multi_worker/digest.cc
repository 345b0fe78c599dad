#include "digest.h"

#include <cstdint>
#include <cstdio>

namespace multi_worker {

std::string digest(const std::vector<cohort::distribute::Variable>& variables) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const cohort::distribute::Variable& variable : variables) {
    const cohort::Tensor value = variable.value().detach().cpu().contiguous();
    const auto* bytes = static_cast<const unsigned char*>(value.data_ptr());
    for (size_t i = 0; i < value.nbytes(); ++i) hash = (hash ^ bytes[i]) * 0x100000001b3u;
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

}  // namespace multi_worker

#include "cohort/core/files/file_system.h"

#include <algorithm>

namespace cohort::internal {

void ReadableFile::scan(uint64_t offset, uint64_t length,
                        const std::function<void(std::string_view)>& visit) const {
  constexpr uint64_t kBlockBytes = uint64_t{256} << 10;  // stays in the cache
  std::string block(std::min(length, kBlockBytes), '\0');
  for (uint64_t done = 0; done < length; done += block.size()) {
    block.resize(std::min(kBlockBytes, length - done));
    read(offset + done, block.data(), block.size());
    visit(block);
  }
}

}  // namespace cohort::internal

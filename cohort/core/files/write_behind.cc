#include "cohort/core/files/write_behind.h"

#include <utility>

namespace cohort::internal {

WriteBehind::WriteBehind(std::function<void(std::string_view)> write)
    : write_(std::move(write)), block_(big_buffer()) {}

void WriteBehind::exchange(AlignedBuffer& buffer, size_t filled) {
  thread_.wait();
  std::swap(buffer, block_);
  thread_.start([this, filled] { write_({block_.get(), filled}); });
}

}  // namespace cohort::internal

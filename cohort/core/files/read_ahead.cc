#include "cohort/core/files/read_ahead.h"

#include <utility>

namespace cohort::internal {

ReadAhead::ReadAhead(Read read)
    : read_(std::move(read)), current_(big_buffer()), coming_(big_buffer()) {
  start();
}

void ReadAhead::start() {
  thread_.start([this] { filled_ = read_(coming_.get(), kBigBufferBytes); });
}

std::string_view ReadAhead::next() {
  thread_.wait();
  if (filled_ == 0) return {};
  std::swap(current_, coming_);
  const size_t filled = filled_;
  start();
  return {current_.get(), filled};
}

}  // namespace cohort::internal

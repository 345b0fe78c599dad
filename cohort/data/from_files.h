// Which file an element is from, for messages about it.
#pragma once

#include <memory>
#include <string>

#include "cohort/core/text.h"
#include "cohort/data/error_context.h"

namespace cohort::internal {

// What an iterator over the elements of files is besides. Thread safety: as the iterator's.
class FromFiles {
 public:
  virtual ~FromFiles() = default;
  // The file of the element, or of the block, that came last; null before the first.
  virtual std::shared_ptr<const std::string> last_file() const = 0;
};

// work(); what it throws is thrown again with the file in front, where there is one.
template <class Work>
auto with_file(const std::shared_ptr<const std::string>& file, const Work& work) {
  try {
    return work();
  } catch (...) {
    if (!file) throw;
    rethrow_with_context("file " + quoted(*file));
  }
}

}  // namespace cohort::internal

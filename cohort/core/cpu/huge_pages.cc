#include "cohort/core/cpu/huge_pages.h"

#include <sys/mman.h>

#include <cstdint>
#include <fstream>
#include <string>

namespace cohort::internal {
namespace {

constexpr uintptr_t kHugePage = 2 << 20;
constexpr size_t kLeastBytes = 4 << 20;

#if defined(MADV_HUGEPAGE)
// Moves pages that are there already, from Linux 6.1 on; glibc 2.36 does not name it.
constexpr int kCollapse = 25;

bool may_be_used() noexcept {
  static const bool answer = [] {
    try {
      std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
      std::string modes;
      return std::getline(file, modes) && modes.find("[never]") == std::string::npos;
    } catch (...) {
      return false;
    }
  }();
  return answer;
}
#endif

}  // namespace

void prefer_huge_pages([[maybe_unused]] void* data, size_t bytes) noexcept {
#if defined(MADV_HUGEPAGE)
  if (bytes < kLeastBytes || !may_be_used()) return;
  const auto begin = reinterpret_cast<uintptr_t>(data);
  const uintptr_t first = (begin + kHugePage - 1) / kHugePage * kHugePage;
  const uintptr_t last = (begin + bytes) / kHugePage * kHugePage;
  auto* const pages = reinterpret_cast<void*>(first);
  // If either call fails, the pages stay as they are, which is no error.
  if (::madvise(pages, last - first, MADV_HUGEPAGE) == 0) {
    ::madvise(pages, last - first, kCollapse);
  }
#endif
}

}  // namespace cohort::internal

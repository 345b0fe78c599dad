// Large pages for tables that are read in random places.
#pragma once

#include <cstddef>

namespace cohort::internal {

// Asks the system to hold [data, data + bytes) in huge pages, as far as these fit into it. A table
// of many rows has more pages than the processor remembers, so that for most rows it must look up
// where their page lies, which is as slow as reading them. Changes no contents. Does nothing for
// less than 4 MiB, and if the system has no huge pages or is not to give them away
// (/sys/kernel/mm/transparent_hugepage/enabled: never).
void prefer_huge_pages(void* data, size_t bytes) noexcept;

}  // namespace cohort::internal

#include "cohort/parameter_server/variables/cached_reads.h"

#include <utility>

#include "cohort/core/error.h"
#include "cohort/parameter_server/variables/read_cache.h"
#include "cohort/parameter_server/variables/served_variable.h"

namespace cohort::internal {
namespace {

thread_local CachedReads* reads_of_thread = nullptr;

void begin_cached_reads(CachedReads* reads) { reads_of_thread = reads; }

}  // namespace

CachedReads* cached_reads() { return reads_of_thread; }

ScopedCachedReads::ScopedCachedReads(CachedReads* reads)
    : previous_(std::exchange(reads_of_thread, reads)) {}

ScopedCachedReads::~ScopedCachedReads() { reads_of_thread = previous_; }

CachedReads::Entry* cached_entry(const ServedVariable& variable) {
  if (reads_of_thread == nullptr) return nullptr;
  CachedReads::Entry& entry = reads_of_thread->entries[&variable];
  if (entry.variable == nullptr) entry.variable = variable.shared_from_this();
  return &entry;
}

}  // namespace cohort::internal

namespace cohort::distribute {

CachedVariableReads::CachedVariableReads() : reads_(std::make_unique<internal::CachedReads>()) {
  if (internal::cached_reads() != nullptr) {
    throw InvalidArgumentError(
        "this thread caches its reads of variables already; such scopes do not nest");
  }
  internal::begin_cached_reads(reads_.get());
}

CachedVariableReads::~CachedVariableReads() { internal::begin_cached_reads(nullptr); }

}  // namespace cohort::distribute

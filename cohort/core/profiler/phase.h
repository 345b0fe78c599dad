// How code says in which phase of a step the calling thread is. session.cc keeps the records.
#pragma once

#include <atomic>
#include <chrono>
#include <string>

#include "cohort/core/profiler/profile.h"

namespace cohort::internal {

struct ThreadRecord;

extern std::atomic<bool> profiler_on;
// The calling thread's record in the current session.
ThreadRecord* current_record();
// Ends the phase that the thread is in and begins `phase`; returns the one it was in, -1 for none.
int switch_phase(ThreadRecord& record, int phase);

// The calling thread is in `phase` for its lifetime; the phase around it goes on afterwards.
class ScopedPhase {
 public:
  explicit ScopedPhase(profiler::Phase phase)
      : record_(profiler_on.load(std::memory_order_relaxed) ? current_record() : nullptr) {
    if (record_ != nullptr) outer_ = switch_phase(*record_, static_cast<int>(phase));
  }
  ~ScopedPhase() {
    if (record_ != nullptr) switch_phase(*record_, outer_);
  }
  ScopedPhase(const ScopedPhase&) = delete;
  ScopedPhase& operator=(const ScopedPhase&) = delete;

 private:
  ThreadRecord* record_;
  int outer_ = -1;
};

// The record, where parts are traced; else nullptr.
ThreadRecord* tracing_record();
void add_part(ThreadRecord& record, const std::string& name,
              std::chrono::steady_clock::time_point begin);

// The calling thread works on a part of that name for its lifetime, within whatever phase it is in.
// A trace shows it; otherwise it costs one load. name: outlives it.
class ScopedPart {
 public:
  explicit ScopedPart(const std::string& name)
      : record_(profiler_on.load(std::memory_order_relaxed) ? tracing_record() : nullptr),
        name_(name) {
    if (record_ != nullptr) begin_ = std::chrono::steady_clock::now();
  }
  ~ScopedPart() {
    if (record_ != nullptr) add_part(*record_, name_, begin_);
  }
  ScopedPart(const ScopedPart&) = delete;
  ScopedPart& operator=(const ScopedPart&) = delete;

 private:
  ThreadRecord* record_;
  const std::string& name_;
  std::chrono::steady_clock::time_point begin_{};
};

// Another step has been run.
void count_step();

}  // namespace cohort::internal

#include "cohort/ops/recording_scope.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "cohort/core/bytes/kept_blocks.h"

namespace cohort::internal {

struct RecordingEntry {
  RecordingEntry(bool does_record, bool did_record) : records(does_record), before(did_record) {}

  const bool records;
  bool before;                                // whether the thread recorded ahead of the scope
  std::atomic<bool> ended_elsewhere = false;  // on another thread
};

namespace {

using Entries = std::vector<std::shared_ptr<RecordingEntry>>;

// Scopes may outlive what their thread remembers.
constinit thread_local bool remembers = true;

// The scopes of this thread, in the order in which they began.
Entries& entries() {
  struct Remembered {
    ~Remembered() { remembers = false; }
    Entries entries;
  };
  thread_local Remembered remembered;
  return remembered.entries;
}

// Returns the place of the next one. That one found what `ended` had set: it leaves what was ahead
// of both.
Entries::iterator take_out(Entries::iterator place) {
  const std::shared_ptr<RecordingEntry> ended = std::move(*place);
  const auto next = entries().erase(place);
  if (next != entries().end() && (*next)->before == ended->records) {
    (*next)->before = ended->before;
  }
  return next;
}

void take_out_what_ended_elsewhere() {
  for (auto entry = entries().begin(); entry != entries().end();) {
    entry = (*entry)->ended_elsewhere ? take_out(entry) : entry + 1;
  }
}

}  // namespace

RecordingScope::RecordingScope(bool records)
    : entry_(std::allocate_shared<RecordingEntry>(KeptAllocator<RecordingEntry>(), records,
                                                  at::GradMode::is_enabled())) {
  if (remembers) {
    take_out_what_ended_elsewhere();
    entries().push_back(entry_);
  }
  at::GradMode::set_enabled(records);
}

RecordingScope::~RecordingScope() { end(); }

void RecordingScope::end() {
  if (entry_ == nullptr) return;
  const std::shared_ptr<RecordingEntry> own = std::exchange(entry_, nullptr);
  if (!remembers) {
    own->ended_elsewhere = true;
    return;
  }
  take_out_what_ended_elsewhere();
  const auto place = std::ranges::find(entries(), own);
  if (place == entries().end()) {
    own->ended_elsewhere = true;
    return;
  }
  const auto later = take_out(place);
  if (later == entries().end()) at::GradMode::set_enabled(own->before);
}

size_t num_recording_scopes() {
  if (!remembers) return 0;
  take_out_what_ended_elsewhere();
  return static_cast<size_t>(
      std::ranges::count_if(entries(), [](const auto& entry) { return entry->records; }));
}

}  // namespace cohort::internal

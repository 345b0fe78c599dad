// What decides on a thread whether libtorch records: tapes turn it on, NoGradients off, each while
// it goes on.
//
//   RecordingScope tape(true), no_gradient(false);   // nothing is recorded
//   tape.end();                                       // still nothing
//   no_gradient.end();                                // as before both
#pragma once

#include <cstddef>
#include <memory>

namespace cohort::internal {

struct RecordingEntry;

// Scopes of a thread may end in any order: the latest that goes on decides, and the last one to end
// leaves recording as the first one found it. Thread safety: end may be called on another thread
// than the constructor, not at once with anything else. It changes nothing there; the scope's own
// thread goes on as it is until what began before the scope ends.
class RecordingScope {
 public:
  explicit RecordingScope(bool records);
  ~RecordingScope();
  RecordingScope(const RecordingScope&) = delete;
  RecordingScope& operator=(const RecordingScope&) = delete;

  bool goes_on() const { return entry_ != nullptr; }
  void end();

 private:
  std::shared_ptr<RecordingEntry> entry_;
};

// How many scopes that record go on on this thread.
size_t num_recording_scopes();

}  // namespace cohort::internal

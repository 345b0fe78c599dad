// Tells whether code runs on placeholders instead of data, only to find out the form of what it
// returns.
#pragma once

#include <cstdint>

namespace cohort::internal {

// During its lifetime, calls on this thread are traced: writes of variables are checked and left
// undone, and random draws leave their generators as they were. Tracing(false) ends that for code
// whose effects are to last, such as the making of a layer's weights.
class Tracing {
 public:
  explicit Tracing(bool traces = true);
  ~Tracing();
  Tracing(const Tracing&) = delete;
  Tracing& operator=(const Tracing&) = delete;

 private:
  uint64_t outer_;
};

// Whether the calling thread is traced. Variables and generators ask, because they keep their state
// then; layers that refuse certain values, because placeholders are zeros and empty strings;
// variables whose values are elsewhere, because zeros will do then.
bool is_tracing();
// Tells the traces of a thread apart, each with those inside of it; 0 outside of them.
uint64_t current_trace();

}  // namespace cohort::internal

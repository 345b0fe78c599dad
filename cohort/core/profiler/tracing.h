// Whether code runs to find out the forms of what it returns, on placeholders instead of data.
#pragma once

#include <cstdint>

namespace cohort::internal {

// While it lives, calls on this thread are of that kind: writes of variables are checked and left
// undone, and draws leave their generators where they are afterwards. With false it ends that for a part that
// is to last, as the making of a layer's weights.
class Tracing {
 public:
  explicit Tracing(bool traces = true);
  ~Tracing();
  Tracing(const Tracing&) = delete;
  Tracing& operator=(const Tracing&) = delete;

 private:
  uint64_t outer_;
};

// For variables and generators, which keep their state. For layers that refuse certain values:
// placeholders are zeros and empty strings. For variables whose values are elsewhere: zeros will do.
bool is_tracing();
// Tells the traces of a thread apart, each with those inside of it; 0 outside of them.
uint64_t current_trace();

}  // namespace cohort::internal

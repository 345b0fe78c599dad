// Whether code runs to find out the forms of what it returns, on placeholders instead of data.
#pragma once

namespace cohort::internal {

// While it lives, calls on this thread are of that kind.
class Tracing {
 public:
  Tracing();
  ~Tracing();
  Tracing(const Tracing&) = delete;
  Tracing& operator=(const Tracing&) = delete;

 private:
  bool outer_;
};

// For layers that refuse certain values: placeholders are zeros and empty strings. For variables
// whose values are elsewhere: zeros will do.
bool is_tracing();

}  // namespace cohort::internal

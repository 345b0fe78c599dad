// The pointer in handle classes (Strategy, Dataset, Optimizer, ...). Once a handle was moved away,
// the pointer that is left behind says so when it is used.
//
//   class COHORT_API Metric {
//     ...
//     internal::Handle<internal::MetricState, "Metric"> state_;
//   };
//   Metric taken = std::move(metric);
//   metric.result();        // FailedPreconditionError: this Metric was moved from ...
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "cohort/core/export.h"

namespace cohort::internal {

// Errors: FailedPrecondition, always; `what` is the handle's class.
[[noreturn]] COHORT_API void throw_moved_from(const char* what);

// A text as an argument of a template.
template <size_t N>
struct Label {
  constexpr Label(const char (&literal)[N]) { std::copy_n(literal, N, text); }
  char text[N];
};

// A handle is empty only if it was made so, or moved from. Every use of an empty one but
// assignment, destruction and comparison is a FailedPrecondition. A use costs what the pointer
// costs, and a comparison.
// Thread safety: as Pointer.
template <class T, Label kWhat, class Pointer = std::shared_ptr<T>>
class Handle {
 public:
  Handle() = default;
  Handle(Pointer object) : object_(std::move(object)) {}

  T* operator->() const { return get(); }
  T& operator*() const { return *get(); }
  T* get() const {
    check();
    return object_.get();
  }
  const Pointer& pointer() const {
    check();
    return object_;
  }
  operator const Pointer&() const { return pointer(); }

  bool empty() const { return object_ == nullptr; }
  bool operator==(const Handle& other) const { return object_ == other.object_; }

 private:
  void check() const {
    if (object_ == nullptr) [[unlikely]]
      throw_moved_from(kWhat.text);
  }

  Pointer object_;
};

}  // namespace cohort::internal

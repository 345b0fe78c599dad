// A value that may be missing: a std::optional that throws one of Cohort's errors if there is no
// value.
//
//   Optional<Structure> element = iterator.get_next_as_optional();
//   if (element.has_value()) train(element.get_value());
#pragma once

#include <concepts>
#include <optional>
#include <ostream>

#include "cohort/core/error.h"

namespace cohort {

// Thread safety: as std::optional.
template <class T>
class Optional : public std::optional<T> {
 public:
  using std::optional<T>::optional;
  Optional(std::optional<T> value) : std::optional<T>(std::move(value)) {}

  // Errors: InvalidArgument (there is no value).
  const T& get_value() const& {
    check();
    return **this;
  }
  T get_value() && {
    check();
    return *std::move(*this);
  }

 private:
  void check() const {
    if (this->has_value()) return;
    throw InvalidArgumentError("an Optional without a value was asked for it; ask has_value first");
  }
};

// The guides' name.
namespace experimental {
using cohort::Optional;
}  // namespace experimental

}  // namespace cohort

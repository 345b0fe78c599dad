// libtorch's errors as Cohort's: short, and of a class that says what to do.
#pragma once

#include <c10/util/Exception.h>

#include <stdexcept>

#include "cohort/core/error.h"

namespace cohort::internal {

// fn(); what libtorch finds wrong with its arguments is an InvalidArgumentError that begins with
// `operation`.
template <class Fn>
auto with_typed_errors(const char* operation, Fn&& fn) {
  try {
    return fn();
  } catch (const Error&) {
    throw;
  } catch (const c10::Error& error) {
    throw InvalidArgumentError(str(operation, ": ", error.what_without_backtrace()));
  } catch (const std::runtime_error& error) {  // of a shape that does not fit, for one
    throw InvalidArgumentError(str(operation, ": ", error.what()));
  }
}

}  // namespace cohort::internal

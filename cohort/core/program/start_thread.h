// Starts threads, and throws a typed error if the system gives none. std::thread's own error says
// only "Resource temporarily unavailable", and not what is unavailable, nor what for.
//
//   thread_ = start_thread("to read ahead with", [this] { run(); });
#pragma once

#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "cohort/core/error.h"

namespace cohort::internal {

// `purpose` goes on after "no thread ". Errors: ResourceExhausted.
template <class Body>
std::thread start_thread(std::string_view purpose, Body&& body) {
  try {
    return std::thread(std::forward<Body>(body));
  } catch (const std::system_error& error) {
    throw ResourceExhaustedError(str("no thread ", purpose, ": ", error.what(),
                                     "; raise the limit of processes (ulimit -u)"));
  }
}

}  // namespace cohort::internal

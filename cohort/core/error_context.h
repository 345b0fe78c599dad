// Errors of user functions, with where they happened.
#pragma once

#include <exception>
#include <string>

namespace cohort::internal {

// Called in a catch block: throws the current exception again with `context` before its text. A
// cohort::Error keeps its class, but OutOfRange becomes InvalidArgument: from a function on
// elements it would be taken for the end of the data. libtorch's errors: see libtorch_error.h.
// std::bad_alloc becomes ResourceExhausted, and so does std::length_error, of a container that was
// to be larger than any memory; other std::exceptions Unknown; what is no std::exception goes on as
// it is.
[[noreturn]] void rethrow_with_context(const std::string& context);

// The error with which a step ends, of the replica's `error`. Errors of Cohort's own classes and
// libtorch's get the replica's name before their text, unless it is empty: then the error is of all
// replicas. A program's own exceptions stay as they are, since only the program knows their
// classes.
std::exception_ptr error_of_step(const std::exception_ptr& error, const std::string& replica);

}  // namespace cohort::internal

#include "cohort/core/error.h"

#include <cstddef>
#include <iterator>
#include <new>
#include <optional>
#include <stdexcept>
#include <typeinfo>

namespace cohort {
namespace {

using Throw = void (*)(const std::string& message, const std::string& task);

template <class ErrorClass>
void throw_as(const std::string& message, const std::string& task) {
  throw ErrorClass(message, task);
}

template <class ErrorClass>
bool is_a(const Error& error) {
  return typeid(error) == typeid(ErrorClass);
}

struct CodeEntry {
  std::string_view name;
  Throw throw_error;
  bool (*is_of_class)(const Error& error);
};

template <class ErrorClass>
constexpr CodeEntry entry(std::string_view name) {
  return {name, throw_as<ErrorClass>, is_a<ErrorClass>};
}

// The entries are indexed by code.
constexpr CodeEntry kCodes[] = {
    entry<InternalError>("OK"),
    entry<CancelledError>("CANCELLED"),
    entry<UnknownError>("UNKNOWN"),
    entry<InvalidArgumentError>("INVALID_ARGUMENT"),
    entry<DeadlineExceededError>("DEADLINE_EXCEEDED"),
    entry<NotFoundError>("NOT_FOUND"),
    entry<AlreadyExistsError>("ALREADY_EXISTS"),
    entry<PermissionDeniedError>("PERMISSION_DENIED"),
    entry<ResourceExhaustedError>("RESOURCE_EXHAUSTED"),
    entry<FailedPreconditionError>("FAILED_PRECONDITION"),
    entry<AbortedError>("ABORTED"),
    entry<OutOfRangeError>("OUT_OF_RANGE"),
    entry<UnimplementedError>("UNIMPLEMENTED"),
    entry<InternalError>("INTERNAL"),
    entry<UnavailableError>("UNAVAILABLE"),
    entry<DataLossError>("DATA_LOSS"),
    entry<UnauthenticatedError>("UNAUTHENTICATED"),
};

const CodeEntry& entry_of(Code code) {
  const auto index = static_cast<size_t>(code);  // of a negative one: beyond the end
  return kCodes[index < std::size(kCodes) ? index : static_cast<size_t>(Code::kUnknown)];
}

}  // namespace

std::string_view code_name(Code code) { return entry_of(code).name; }

namespace internal {

void throw_error(Code code, const std::string& message, const std::string& task) {
  entry_of(code).throw_error(message, task);
  std::terminate();  // never reached
}

std::exception_ptr make_error(Code code, const std::string& message, const std::string& task) {
  try {
    throw_error(code, message, task);
  } catch (...) {
    return std::current_exception();
  }
}

// For libtorch_error.cc, which is not there in a program without libtorch.
[[gnu::weak]] std::optional<ErrorRecord> record_libtorch_error(const std::exception& error);

bool is_of_its_code(const Error& error) { return entry_of(error.code()).is_of_class(error); }

ErrorRecord record_error(const std::exception_ptr& error) {
  if (error == nullptr) return {Code::kUnknown, "a thread was ended from outside"};
  try {
    std::rethrow_exception(error);
  } catch (const Error& typed) {
    return {typed.code(), typed.what(), typed.task()};
  } catch (const std::bad_alloc& no_memory) {
    return {Code::kResourceExhausted, str("out of memory: ", no_memory.what())};
  } catch (const std::length_error& no_memory) {
    return {Code::kResourceExhausted, str("out of memory: ", no_memory.what())};
  } catch (const std::exception& other) {
    if (record_libtorch_error != nullptr) {
      if (auto record = record_libtorch_error(other)) return *std::move(record);
    }
    return {Code::kUnknown, other.what()};
  } catch (...) {
    return {Code::kUnknown, "an exception that is no std::exception"};
  }
}

}  // namespace internal
}  // namespace cohort

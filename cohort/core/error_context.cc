#include "cohort/core/error_context.h"

#include <new>
#include <stdexcept>

#include "cohort/core/error.h"
#include "cohort/core/libtorch_error.h"

namespace cohort::internal {

void rethrow_with_context(const std::string& context) {
  try {
    throw;
  } catch (const OutOfRangeError& error) {
    throw InvalidArgumentError(
        str(context, ": the function threw an OutOfRangeError: ", error.what()), error.task());
  } catch (const Error& error) {
    throw_error(error.code(), context + ": " + error.what(), error.task());
  } catch (const c10::Error& error) {
    throw_libtorch_error(error, context);
  } catch (const std::bad_alloc& error) {
    throw ResourceExhaustedError(str(context, ": out of memory: ", error.what()));
  } catch (const std::length_error& error) {
    throw ResourceExhaustedError(str(context, ": out of memory: ", error.what()));
  } catch (const std::exception& error) {
    throw UnknownError(context + ": " + error.what());
  }
}

std::exception_ptr error_of_step(const std::exception_ptr& error, const std::string& replica) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& typed) {
    if (replica.empty() || !is_of_its_code(typed)) return error;
    return make_error(typed.code(), replica + ": " + typed.what(), typed.task());
  } catch (const c10::Error& of_libtorch) {
    try {
      throw_libtorch_error(of_libtorch, replica.empty() ? "in a call of all replicas" : replica);
    } catch (...) {
      return std::current_exception();
    }
  } catch (...) {
    return error;
  }
}

}  // namespace cohort::internal

#include "cohort/data/functions/error_context.h"

#include <c10/util/Exception.h>

#include "cohort/core/error.h"

namespace cohort::internal {

void rethrow_with_context(const std::string& context) {
  try {
    throw;
  } catch (const Error& error) {
    throw_error(error.code(), context + ": " + error.what(), error.task());
  } catch (const c10::Error& error) {
    throw InvalidArgumentError(context + ": " + error.what_without_backtrace());
  } catch (const std::exception& error) {
    throw UnknownError(context + ": " + error.what());
  }
}

}  // namespace cohort::internal

#include "cohort/parameter_server/runner/failed_program.h"

#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/program/interrupt.h"
#include "cohort/parameter_server/runner/early_failure.h"

namespace cohort::internal {
namespace {

// Nothing is where the program has caught the exception, and goes on; Ctrl-C the others get as
// well.
bool is_for_others(const std::exception_ptr& error) {
  if (error == nullptr) return false;
  try {
    std::rethrow_exception(error);
  } catch (const InterruptedError&) {
    return false;
  } catch (...) {
    return true;
  }
}

}  // namespace

void FailedProgram::on_failure(const std::exception_ptr& error) noexcept {
  if (!is_for_others(error)) return;
  try {
    if (server_ != nullptr) return tell_own_failure(*server_, error);
    fail_(error);
  } catch (const std::exception& other) {
    log_info(untold_text("the other tasks", error, other));
  }
}

void FailedServer::on_failure(const std::exception_ptr& error) noexcept {
  if (server_ == nullptr) return;
  try {
    if (is_for_others(error)) tell_end(*server_, error);
  } catch (const std::exception& other) {
    log_info(untold_text("the coordinator", error, other));
  }
  server_.reset();
}

}  // namespace cohort::internal

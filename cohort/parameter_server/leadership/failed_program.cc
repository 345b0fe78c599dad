#include "cohort/parameter_server/leadership/failed_program.h"

#include "cohort/core/error.h"
#include "cohort/core/interrupt.h"
#include "cohort/core/logging.h"
#include "cohort/distribute/step_runner.h"
#include "cohort/parameter_server/leadership/early_failure.h"

namespace cohort::internal {
namespace {

// As a call of fit that has failed.
void fail_in_place_of(const ParameterServerCore::Setup& setup, const std::exception_ptr& error) {
  ParameterServerCore::make(setup)->make_runner()->fail(error);
}

}  // namespace

void FailedProgram::on_failure(const std::exception_ptr& error) noexcept {
  if (error == nullptr) return;  // the program has caught it, and goes on
  try {
    std::rethrow_exception(error);
  } catch (const InterruptedError&) {
    return;  // Ctrl-C, which the others get as well
  } catch (...) {
  }
  try {
    if (setup_.server != nullptr) return tell_own_failure(*setup_.server, error);
    fail_in_place_of(setup_, error);
  } catch (const std::exception& other) {
    log_info("the other tasks were not told of an error: ", other.what());
  }
}

}  // namespace cohort::internal

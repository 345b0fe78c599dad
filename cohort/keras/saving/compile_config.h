// What compile said, as a configuration: Keras's get_compile_config. For sources only: it includes
// nlohmann-json.
#pragma once

#include <string>

#include "cohort/keras/base/config_json.h"
#include "cohort/keras/losses/loss.h"
#include "cohort/keras/model/compile_options.h"
#include "cohort/keras/training/compiled_model.h"

namespace cohort::internal {

// Errors: Unimplemented (a function of the program; says which).
Json compile_config(const CompiledModel& compiled);
// Errors: InvalidArgument, Unimplemented.
keras::CompileOptions read_compile_config(const Json& json, const std::string& where);

// Read a name, or what serialize() gives. Errors: InvalidArgument, Unimplemented.
keras::LossArgument read_loss(const Json& json, const std::string& where);
keras::MetricArgument read_metric(const Json& json, const std::string& where);

}  // namespace cohort::internal

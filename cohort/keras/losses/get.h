// Losses by name.
//
//   losses::Loss loss = losses::get("mean_absolute_error");   // or "MeanAbsoluteError", "mae"
#pragma once

#include <optional>
#include <string_view>

#include "cohort/core/export.h"
#include "cohort/keras/losses/loss.h"

namespace cohort::keras::losses {

// The loss that Keras knows under `name`: a class ("MeanAbsoluteError"), a function
// ("mean_absolute_error") or its short form ("mae"). The rest is as its own options have it.
// Errors: InvalidArgument (no such loss; names the nearest).
COHORT_API Loss get(std::string_view name, const LossOptions& options = {});

}  // namespace cohort::keras::losses

namespace cohort::internal {
// Nothing where there is no such loss.
std::optional<keras::losses::Loss> find_loss(std::string_view name,
                                             const keras::losses::LossOptions& options);
}  // namespace cohort::internal

// What a call of fit, evaluate or predict was given, which is the same in all tasks that make the
// call together: with other numbers a task would read other rows, or wait where nobody comes.
#pragma once

#include <string>

#include "cohort/distribute/core/strategy_core.h"
#include "cohort/keras/model/fit_options.h"

namespace cohort::internal {

// COLLECTIVE over tasks. Errors: those of collective calls; where tasks give others,
// FailedPrecondition that has the options of two of them.
void agree_on_call(StrategyCore& core, const keras::FitOptions& options);
void agree_on_call(StrategyCore& core, const keras::EvaluateOptions& options);
void agree_on_call(StrategyCore& core, const keras::PredictOptions& options);

}  // namespace cohort::internal

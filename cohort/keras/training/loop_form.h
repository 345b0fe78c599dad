// What fit and evaluate return, in the form in which the task that runs them tells it to others
// (StepRunner::run_loop).
#pragma once

#include "cohort/core/structure/structure.h"
#include "cohort/keras/model/logs.h"

namespace cohort::internal {

Structure form_of(const keras::Logs& logs);
Structure form_of(const keras::History& history);
keras::Logs logs_of(const Structure& form);
keras::History history_of(const Structure& form);

}  // namespace cohort::internal

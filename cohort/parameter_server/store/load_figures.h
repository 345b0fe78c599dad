// What people are shown of the load of a ps task: `cohort cluster status`, metrics and summaries.
#pragma once

#include "cohort/parameter_server/store/named_figures.h"
#include "cohort/parameter_server/store/variable_store.h"

namespace cohort::internal {

NamedFigures figures_of(const VariableStore::Load& load);

}  // namespace cohort::internal

// Makes an update rule from its data: what a parameter server does with the rule of a push.
#pragma once

#include <memory>

#include "cohort/optim/update_rule.h"

namespace cohort::optim {

// The rule whose config() this is.
// Errors: InvalidArgument (no such rule; a missing or unknown hyper-parameter, or one that the rule
// refuses).
std::unique_ptr<const UpdateRule> make_rule(const RuleConfig& config);

}  // namespace cohort::optim

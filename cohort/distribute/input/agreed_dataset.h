// What tasks that divide one dataset must agree on before they do: that it is the same one, and in
// which order its elements come.
#pragma once

#include <string_view>

#include "cohort/collective/sync_group.h"
#include "cohort/data/dataset.h"

namespace cohort::internal {

// Checks that tasks which divide a dataset divide the same one, by what is known of it without
// reading. If the datasets differ, some elements are read twice, and others never. `what` names the
// call for errors; `more`: what else must be the same.
// COLLECTIVE over the tasks. Errors: those of a Communicator's calls.
void agree_on_dataset(collective::SyncGroup& group, const data::Dataset& dataset,
                      std::string_view what, std::string_view more = "");

// Gives all tasks that divide a dataset the same order of it: shuffles without a seed take the
// seeds of task 0.
// COLLECTIVE over the tasks if there are such shuffles. Errors: those of a Communicator's calls.
data::Dataset in_agreed_order(collective::SyncGroup& group, const data::Dataset& dataset);

}  // namespace cohort::internal

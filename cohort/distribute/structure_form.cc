#include "cohort/distribute/structure_form.h"

#include <string>

namespace cohort::internal {

void agree_on_form(collective::SyncGroup& group, const Structure& value, std::string_view call) {
  if (!group.spans_tasks() || value.is_leaf() || value.num_leaves() == 0) return;
  std::string form;
  value.for_each_with_path([&](const std::string& path, const Leaf& leaf) {
    form += str(form.empty() ? "" : ", ", path, leaf.is_strings() ? " of strings" : "");
  });
  const std::string name = str(call, " of a structure");
  group.between().barrier({.name = name, .signature = form, .timeout = group.timeout()});
}

}  // namespace cohort::internal

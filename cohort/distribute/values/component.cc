#include "cohort/distribute/values/component.h"

#include "cohort/core/error.h"

namespace cohort::internal {

void throw_wrong_component_count(const char* what, size_t components, size_t replicas) {
  throw InvalidArgumentError(str(what, " has ", components, " components, but this process has ",
                                 replicas, " replicas; was it made under another strategy?"));
}

}  // namespace cohort::internal

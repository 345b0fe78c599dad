#include "cohort/core/handle.h"

#include "cohort/core/error.h"

namespace cohort::internal {

void throw_moved_from(const char* what) {
  throw FailedPreconditionError(str("this ", what,
                                    " was moved from, so it names nothing any more; use the object "
                                    "that it was moved to, or assign another one to it"));
}

}  // namespace cohort::internal

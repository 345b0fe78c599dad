// In place of gloo_transport.cc, for builds with a libtorch that brings a Gloo of its own.
#include "cohort/collective/network/gloo_transport.h"
#include "cohort/core/error.h"

namespace cohort::collective {

bool gloo_is_built() { return false; }

std::unique_ptr<Transport> make_gloo_transport(const GroupMember&, const std::string&,
                                               std::unique_ptr<Transport>) {
  throw FailedPreconditionError(
      "this Cohort is built without Gloo, as its libtorch brings a Gloo of its own");
}

}  // namespace cohort::collective

// Whether some tasks may decide for an elastic cluster: of two halves that cannot reach each other
// at most one may.
#pragma once

#include <vector>

#include "cohort/cluster/membership/session.h"
#include "cohort/core/function_ref.h"

namespace cohort::internal::membership {

// The members of a group, in order of their tasks.
struct Membership {
  std::vector<Session> members = {};

  bool operator==(const Membership&) const = default;
};

enum class Presence {
  kHere,
  kAway,  // it may live, out of reach
  kGone,  // its process has ended for certain, or has left: it decides nothing any more
};

// Whether more than half of the members that are not gone are here, or exactly half with the first
// of them. No two sets of members that have nobody in common are both a majority, also where one
// side does not know of all that are gone.
bool is_majority(const Membership& group, FunctionRef<Presence(const Session&)> presence);

}  // namespace cohort::internal::membership

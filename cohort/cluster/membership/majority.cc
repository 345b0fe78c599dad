#include "cohort/cluster/membership/majority.h"

#include <cstddef>

namespace cohort::internal::membership {

bool is_majority(const Membership& group, FunctionRef<Presence(const Session&)> presence) {
  size_t here = 0;
  size_t counted = 0;
  bool first_is_here = true;  // of a group that is all gone, nobody objects
  for (const Session& member : group.members) {
    const Presence state = presence(member);
    if (state == Presence::kGone) continue;
    if (counted == 0) first_is_here = state == Presence::kHere;
    ++counted;
    if (state == Presence::kHere) ++here;
  }
  return 2 * here > counted || (2 * here == counted && first_is_here);
}

}  // namespace cohort::internal::membership

#include "cohort/collective/group_member.h"

#include "cohort/core/error.h"

namespace cohort::collective {

std::string GroupMember::key(std::string_view what, int of_rank) const {
  return internal::str(key(what), '/', of_rank);
}

std::string GroupMember::key(std::string_view what) const {
  return internal::str("collective/", group, '/', generation, '/', what);
}

}  // namespace cohort::collective

// A communicator over hosts that have several tasks each: the tasks of a host first, among
// themselves, then one leader of each host with the others' leaders.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "cohort/collective/communicator.h"
#include "cohort/collective/group_member.h"

namespace cohort::collective {

// The ranks of each host, in their order; hosts in the order of their first ranks, which lead them.
using HostRanks = std::vector<std::vector<int>>;

using MakeCommunicator = std::function<std::shared_ptr<Communicator>(const GroupMember&)>;

// Values are added host by host, those of a host in the order of ranks: (r0 + r1) + (r2 + r3),
// short floats in float32. All tasks get the same bits; they are those of a group without hosts
// where each host has one task, and otherwise agree with them up to rounding.
//
// COLLECTIVE over the tasks of `member`: `within` makes the communicator of the tasks of one host,
// `between` that of the leaders.
std::shared_ptr<Communicator> make_hierarchical_communicator(const GroupMember& member,
                                                             const HostRanks& hosts,
                                                             const MakeCommunicator& within,
                                                             const MakeCommunicator& between);

}  // namespace cohort::collective

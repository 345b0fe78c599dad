// A Communicator over any Transport. Every backend between processes gets its algorithms here, so
// that all of them add in one order and their results have the same bits.
#pragma once

#include <memory>

#include "cohort/collective/communicator.h"
#include "cohort/collective/group_member.h"
#include "cohort/collective/network/transport.h"

namespace cohort::collective {

// Buffers are in host memory.
std::shared_ptr<Communicator> make_transport_communicator(const GroupMember& member,
                                                          std::unique_ptr<Transport> transport);

}  // namespace cohort::collective

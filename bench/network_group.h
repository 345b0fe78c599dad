// What connects the processes of a benchmark whose ranks are on hosts of their own.
#pragma once

#include <memory>
#include <string>

#include "cohort/cluster/server.h"
#include "cohort/collective/group_member.h"
#include "cohort/collective/network/transport.h"

namespace bench {

// The server's place among all tasks of its cluster, once these are there; those who wait for it
// never say so. The server must outlive it.
cohort::collective::GroupMember member_in(cohort::distribute::Server& server);

// backend: a network's name in small letters. COLLECTIVE over the tasks of `member`.
std::unique_ptr<cohort::collective::Transport> connect_transport(
    const std::string& backend, const cohort::collective::GroupMember& member,
    cohort::distribute::Server& server);

}  // namespace bench

// The services that every server has. A new one of this folder is a line in server_services.cc;
// layers above add theirs to a server with ServerCore::add.
#pragma once

#include <memory>
#include <span>

#include "cohort/cluster/rpc/service.h"
#include "cohort/cluster/server_context.h"

namespace cohort::internal {

// `context` lives longer than the service. nullptr: this task does not need it.
using MakeService = std::shared_ptr<rpc::Service> (*)(ServerContext& context);

std::span<const MakeService> server_services();

}  // namespace cohort::internal

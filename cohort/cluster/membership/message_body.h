// How a message of membership travels: small ones as control bytes, which arrive with the header,
// large ones (values, cluster specs, views of many tasks) as bulk, which a header has no room for.
#pragma once

#include <string>
#include <string_view>

#include "cohort/cluster/rpc/channel.h"
#include "cohort/cluster/rpc/message.h"

namespace cohort::internal::membership {

rpc::Message to_message(std::string bytes);
// Lives as long as the message.
std::string_view body_of(const rpc::Message& message);
// The result with the body as control bytes, however it travelled.
rpc::CallResult with_body(rpc::CallResult result);

}  // namespace cohort::internal::membership

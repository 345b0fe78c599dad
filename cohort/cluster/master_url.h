// The address of a task, as programs that connect to it write it.
#pragma once

#include <string>

namespace cohort::internal {

// "grpc://host:port"; without a layer, or without an address, the address itself.
inline std::string master_url(const std::string& address, const std::string& rpc_layer) {
  return rpc_layer.empty() || address.empty() ? address : rpc_layer + "://" + address;
}

}  // namespace cohort::internal

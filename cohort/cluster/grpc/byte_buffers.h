// Bytes as gRPC carries them, without copies where they are many.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <functional>
#include <string_view>
#include <vector>

#include "cohort/cluster/rpc/message.h"

namespace cohort::internal::rpc {

grpc::ByteBuffer to_byte_buffer(const std::vector<Bytes>& slices);
void for_each_slice(const grpc::ByteBuffer& buffer,
                    const std::function<void(std::string_view)>& take);

}  // namespace cohort::internal::rpc

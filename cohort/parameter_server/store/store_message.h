// What tasks ask of a ps task's store, as messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/cluster/rpc/message.h"
#include "cohort/parameter_server/store/variable_store.h"

namespace cohort::internal {

// Of a request or an answer.
inline constexpr size_t kMostStoreBytes = size_t{2} << 30;

// Makes a shard, unless it is there.
struct CreateRequest {
  ShardKey key;
  std::string name;
  Tensor value;
};

// For each shard the version that the caller has; -1: none.
struct ReadRequest {
  struct Entry {
    ShardKey key;
    int64_t known_version = -1;
  };
  std::vector<Entry> entries;
};
// In the order of the request.
struct ReadReply {
  std::vector<VariableStore::Value> values;
};

struct RowsRequest {
  ShardKey key;
  Tensor indices;
};

struct ApplyRequest {
  uint64_t token = 0;
  // No token below will come again.
  uint64_t forget_below = 0;
  std::vector<StoreOp> ops;
};

// Errors of the decoders: DataLoss and InvalidArgument (a message that is none of these; the text
// begins with what it should have been).
rpc::Message encode(const CreateRequest& request);
rpc::Message encode(const ReadRequest& request);
rpc::Message encode(const ReadReply& reply);
rpc::Message encode(const RowsRequest& request);
rpc::Message encode(const ApplyRequest& request);
CreateRequest decode_create(const rpc::Message& message);
ReadRequest decode_read(const rpc::Message& message);
ReadReply decode_read_reply(const rpc::Message& message);
RowsRequest decode_rows(const rpc::Message& message);
ApplyRequest decode_apply(const rpc::Message& message);

}  // namespace cohort::internal

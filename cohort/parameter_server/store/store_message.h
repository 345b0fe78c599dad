// What tasks ask of a ps task's store, as messages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/cluster/rpc/message.h"
#include "cohort/distribute/core/variable_spec.h"
#include "cohort/parameter_server/store/variable_store.h"

namespace cohort::internal {

// The most bytes of a request or an answer.
inline constexpr size_t kMostStoreBytes = size_t{2} << 30;

// A shard's initial value that the ps task makes by itself.
struct KnownShard {
  distribute::KnownValues values;
  std::vector<int64_t> shape;
  int64_t first = 0;  // number of the shard's first element in the variable
  DType dtype = float32;
};
// Makes a shard, unless it is there.
struct CreateRequest {
  ShardKey key;
  std::string name;
  Tensor value = {};  // undefined: as `known` says
  std::optional<KnownShard> known = std::nullopt;
  // The shard with which it is released; missing: the sender will say when.
  std::optional<ShardKey> owner = std::nullopt;
};

// For each shard the version that the caller has; -1: none.
struct ReadRequest {
  using Entry = VariableStore::Wanted;
  std::vector<Entry> entries;
};
// In the order of the request; of a shard that is not there a value that is missing.
struct ReadReply {
  std::vector<VariableStore::Value> values;
};

// Rows of several shards; the answer has a tensor for each.
struct RowsRequest {
  struct Entry {
    ShardKey key;
    Tensor indices;
  };
  std::vector<Entry> entries;
};

struct ApplyRequest {
  uint64_t token = 0;
  // No token below will come again.
  uint64_t forget_below = 0;
  std::vector<StoreOp> ops;
};

// VariableStore::release.
struct ReleaseRequest {
  std::vector<NamedShard> shards;
};

// A push, and what its sender reads after it, all in one call. The answer is a ReadReply: the
// values of `read`, then those of `rows`.
struct PushPullRequest {
  ApplyRequest push = {};
  ReadRequest read = {};
  RowsRequest rows = {};
};

// Errors of the decoders: DataLoss and InvalidArgument (a message that is none of these; the text
// begins with what it should have been).
rpc::Message encode(const CreateRequest& request);
rpc::Message encode(const ReadRequest& request);
rpc::Message encode(const ReadReply& reply);
rpc::Message encode(const RowsRequest& request);
rpc::Message encode(const ApplyRequest& request);
rpc::Message encode(const ReleaseRequest& request);
rpc::Message encode(const PushPullRequest& request);
rpc::Message encode(const VariableStore::Load& load);
CreateRequest decode_create(const rpc::Message& message);
ReadRequest decode_read(const rpc::Message& message);
ReadReply decode_read_reply(const rpc::Message& message);
RowsRequest decode_rows(const rpc::Message& message);
ApplyRequest decode_apply(const rpc::Message& message);
ReleaseRequest decode_release(const rpc::Message& message);
PushPullRequest decode_push_pull(const rpc::Message& message);
VariableStore::Load decode_load(const rpc::Message& message);

}  // namespace cohort::internal

// How a coordinator lets ps tasks write their values to a checkpoint, and read them, as messages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cohort/cluster/rpc/message.h"
#include "cohort/parameter_server/store/variable_store.h"
#include "cohort/train/bundle/tensor_slice.h"

namespace cohort::internal {

// VariableStore::keep. The coordinator numbers what it lets keep.
struct KeepRequest {
  uint64_t id = 0;
  std::vector<ShardKey> keys;
};

// All that is kept under `id` into one file of `directory`, if `probe` is in it. Both names are
// those of temporary files (core/files/temporary_files.h).
struct WriteKeptRequest {
  uint64_t id = 0;
  std::string directory;
  std::string probe;
  std::string file;
};
struct WriteKeptReply {
  bool sees_directory = false;
  struct Place {
    uint64_t offset = 0;
    uint64_t size = 0;
    uint32_t crc = 0;  // masked
  };
  std::vector<Place> places;  // in the order of the keys
};

// One of the values, as a ReadReply; or: they need not be kept any more.
struct KeptRequest {
  uint64_t id = 0;
  uint64_t index = 0;
};

// Parts of a checkpoint, each for its shard, to be adopted or dropped under `id` (KeptRequest). The
// index of the checkpoint has this checksum.
struct ReadPartsRequest {
  uint64_t id = 0;
  std::string prefix;  // absolute
  uint32_t index_crc = 0;
  struct Part {
    ShardKey key;
    std::string name;                                        // in the checkpoint
    std::optional<train::TensorSlice> slice = std::nullopt;  // without: all of it
    // The name of a shard that is made of it when it is adopted, unless it is there; empty: it is
    // there.
    std::string new_shard = "";
  };
  std::vector<Part> parts;
};
struct ReadPartsReply {
  bool found = false;  // that checkpoint
};

// A value for a shard, beside those that have come under `id`: as ReadPartsRequest, of a checkpoint
// that the ps task does not find.
struct SendPartRequest {
  uint64_t id = 0;
  VariableStore::NewValue part;
};

// Errors of the decoders: DataLoss (a message that is none of these); of a value that was sent,
// InvalidArgument.
rpc::Message encode(const KeepRequest& request);
rpc::Message encode(const WriteKeptRequest& request);
rpc::Message encode(const WriteKeptReply& reply);
rpc::Message encode(const KeptRequest& request);
rpc::Message encode(const ReadPartsRequest& request);
rpc::Message encode(const ReadPartsReply& reply);
rpc::Message encode(const SendPartRequest& request);
KeepRequest decode_keep(const rpc::Message& message);
WriteKeptRequest decode_write_kept(const rpc::Message& message);
WriteKeptReply decode_write_kept_reply(const rpc::Message& message);
KeptRequest decode_kept(const rpc::Message& message);
ReadPartsRequest decode_read_parts(const rpc::Message& message);
ReadPartsReply decode_read_parts_reply(const rpc::Message& message);
SendPartRequest decode_send_part(const rpc::Message& message);

}  // namespace cohort::internal

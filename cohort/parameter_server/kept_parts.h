// How the ps tasks of a cluster write what they have to a checkpoint, and read it.
#pragma once

#include <memory>
#include <string>

#include "cohort/parameter_server/store/store_client.h"
#include "cohort/train/remote_values.h"

namespace cohort::internal {

class ParameterServerCore;

// A shard.
class ServedPart final : public train::RemotePart {
 public:
  ServedPart(std::shared_ptr<train::RemoteKeeper> keeper, const ShardPlace& place,
             std::vector<int64_t> shape, DType dtype)
      : RemotePart(std::move(keeper), std::move(shape), dtype), place_(place) {}
  const ShardPlace& place() const { return place_; }

 private:
  const ShardPlace place_;
};

// Of a coordinator: lets ps tasks keep shards as they are, which costs no copy before one is written to, and
// write them in parallel; and read what shards are to be. Where a ps task does not see the checkpoint, the
// coordinator does both for all, and says so once. In tasks that leave changes to it (workers and ps tasks,
// outside of closures) a restore reads nothing.
std::shared_ptr<train::RemoteKeeper> make_part_keeper(
    const std::weak_ptr<ParameterServerCore>& core);

}  // namespace cohort::internal

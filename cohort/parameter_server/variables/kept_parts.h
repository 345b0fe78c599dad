// How the ps tasks of a cluster write what they have to a checkpoint, and read it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/parameter_server/store/store_client.h"
#include "cohort/parameter_server/variables/variable_host.h"
#include "cohort/train/objects/remote_values.h"

namespace cohort::internal {

// A shard.
class ServedPart final : public train::RemotePart {
 public:
  struct Identity {
    ShardPlace place;
    // The name of a shard that is made when it is read, unless it is there; empty: it is there.
    std::string new_name = "";
  };
  ServedPart(std::shared_ptr<train::RemoteKeeper> keeper, Identity identity,
             std::vector<int64_t> shape, DType dtype)
      : RemotePart(std::move(keeper), std::move(shape), dtype), identity_(std::move(identity)) {}
  const ShardPlace& place() const { return identity_.place; }
  const std::string& new_name() const { return identity_.new_name; }

 private:
  const Identity identity_;
};

// A coordinator's keeper: lets ps tasks keep shards as they are, which costs no copy before one is
// written to, and write them in parallel; and read what shards are to be. If a ps task does not see
// the checkpoint, the coordinator does both for all, and says so once. In tasks that leave changes
// to it (workers and ps tasks, outside of closures) a restore reads nothing; a closure reads what
// it makes itself.
std::shared_ptr<train::RemoteKeeper> make_part_keeper(const std::weak_ptr<VariableHost>& host);

}  // namespace cohort::internal

#include "cohort/parameter_server/variables/make_shards.h"

#include "cohort/distribute/variables/variable_creation.h"
#include "cohort/train/objects/pending_value.h"

namespace cohort::internal {

using distribute::ShardInfo;

void make_shards(const ServedVariable& variable, const distribute::VariableInitializer& initializer,
                 const StoreClient& store) {
  const auto& restored = initializer.restored();
  if (restored != nullptr && restored->read_elsewhere(variable.shards_to_make())) return;
  const auto known = initializer.describe();
  const ShardLayout& layout = variable.layout();
  const auto& shards = layout.shards;
  int64_t row_size = 1;
  for (size_t d = 1; d < variable.shape().size(); ++d) row_size *= variable.shape()[d];
  for (size_t i = 0; i < shards.size(); ++i) {
    ShardInfo part = ShardInfo::whole(variable.shape().vec());
    if (shards.size() > 1) {
      part.offset[0] = shards[i].rows.begin;
      part.shape[0] = shards[i].rows.size();
    }
    const StoreClient::NewShard shard{
        .place = shards[i].place, .name = layout.shard_name(i), .owner = shards[i].owner};
    if (known) {
      store.create(shard, KnownShard{.values = *known,
                                     .shape = part.shape,
                                     .first = shards[i].rows.begin * row_size,
                                     .dtype = variable.dtype()});
    } else {
      store.create(shard, make_initial_value(variable.spec(), initializer, part).contiguous());
    }
  }
}

}  // namespace cohort::internal

// Decides on which ps tasks the shards of new variables go.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cohort/distribute/core/variable_spec.h"
#include "cohort/parameter_server/variables/partitioner.h"
#include "cohort/parameter_server/variables/shard_layout.h"
#include "cohort/parameter_server/variables/variable_placement.h"

namespace cohort::internal {

// Every task of a cluster has one and makes the same variables in the same order, so that all know
// where each is.
// Thread safety: any thread.
class Placement {
 public:
  Placement(int num_ps, distribute::VariablePlacement how,
            distribute::partitioners::Partitioner partitioner);

  // Returns the shards in the order of their rows. `id`: of the variable. Shards that are kept
  // beside those of another variable, as slots are, have these as owners. `ps`: where to put all
  // others; missing: one after another. A variable whose constraint spans rows has one shard.
  // Errors: those of shards_of; Unimplemented (a constraint that is a function of the program).
  std::vector<PlacedShard> place(const distribute::VariableSpec& spec, int64_t id,
                                 std::optional<int> ps = std::nullopt);
  // The ps task that this device belongs to. `variable`: what is to be there. Errors:
  // InvalidArgument (it belongs to none).
  int ps_of(const std::string& device, const std::string& variable) const;

 private:
  static bool is_kept_whole(const distribute::VariableSpec& spec);
  int next(int64_t bytes, std::optional<int> ps);  // with mutex_ held

  const distribute::VariablePlacement how_;
  const distribute::partitioners::Partitioner partitioner_;
  std::mutex mutex_;  // guards what follows
  int next_ = 0;
  std::vector<int64_t> bytes_;  // by ps task
};

}  // namespace cohort::internal

// One value of what all replicas have: the calls behind Strategy::reduce and gather.
#pragma once

#include <cstdint>

#include "cohort/core/structure/string_tensor.h"
#include "cohort/core/structure/structure.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/distribute/values/reduce_axis.h"
#include "cohort/distribute/values/values.h"

namespace cohort::internal {

class StrategyCore;

// The components of all replicas, where they are here (ReplicaSource::has_all); else the value.
distribute::PerReplica<Structure> of_all_replicas(const StrategyCore& core,
                                                  const distribute::PerReplica<Structure>& value);

// These are COLLECTIVE over the tasks of the strategy. Errors: see Strategy::reduce.
Tensor reduce_replicas(StrategyCore& core, distribute::ReduceOp op,
                       const distribute::PerReplica<Tensor>& value,
                       const distribute::ReduceAxis& axis = std::nullopt);
Tensor reduce_replicas(StrategyCore& core, distribute::ReduceOp op,
                       const distribute::Mirrored<Tensor>& value,
                       const distribute::ReduceAxis& axis = std::nullopt);
Tensor reduce_replicas(StrategyCore& core, distribute::ReduceOp op, const Tensor& value,
                       const distribute::ReduceAxis& axis = std::nullopt);
Structure reduce_replicas(StrategyCore& core, distribute::ReduceOp op,
                          const distribute::PerReplica<Structure>& value,
                          const distribute::ReduceAxis& axis = std::nullopt);

// These, too. Errors: see Strategy::gather.
Tensor gather_replicas(StrategyCore& core, const distribute::PerReplica<Tensor>& value,
                       int64_t axis);
Tensor gather_replicas(StrategyCore& core, const Tensor& value, int64_t axis);
StringTensor gather_replicas(StrategyCore& core, const distribute::PerReplica<StringTensor>& value,
                             int64_t axis);
Structure gather_replicas(StrategyCore& core, const distribute::PerReplica<Structure>& value,
                          int64_t axis);

}  // namespace cohort::internal

// How a distributed dataset feeds its replicas.
#pragma once

#include <optional>

namespace cohort::distribute {

enum class InputReplicationMode : int {
  PER_WORKER,   // one pipeline a worker feeds all of its replicas
  PER_REPLICA,  // one a replica: for distribute_datasets_from_function only
};

// A value type. Thread safety: as any struct.
struct InputOptions {
  // Whether batches are moved to the replicas' devices; missing: yes.
  std::optional<bool> experimental_fetch_to_device = std::nullopt;
  InputReplicationMode experimental_replication_mode = InputReplicationMode::PER_WORKER;
  // With PER_REPLICA only: the replica's device stands for its pipeline, whose function may make
  // tensors there; otherwise that device's host does.
  bool experimental_place_dataset_on_device = false;
  // Batches made ahead for each replica, beside the one that experimental_distribute_dataset always
  // makes; 0 makes each batch when it is asked for. The datasets of a dataset function prefetch for
  // themselves: it has no effect on them.
  int experimental_per_replica_buffer_size = 1;
};

}  // namespace cohort::distribute

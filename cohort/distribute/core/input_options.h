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
  // For PER_REPLICA only. True: the pipeline belongs to the replica's device, and its function may
  // create tensors there; false: it belongs to that device's host.
  bool experimental_place_dataset_on_device = false;
  // Batches prepared ahead for each replica, besides the one that experimental_distribute_dataset
  // always prepares, and more where they are small; with 0 each batch is made when it is requested.
  // Batches for GPUs are on their way there. Has no effect on dataset functions, whose datasets
  // prefetch by themselves, but that one batch is copied ahead to each GPU; with 0 none.
  int experimental_per_replica_buffer_size = 1;
};

}  // namespace cohort::distribute

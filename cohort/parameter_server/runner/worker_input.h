// What a worker reads for the steps of one loop (distribute/step_runner.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cohort/distribute/input/distributed_dataset.h"
#include "cohort/distribute/input/distributed_iterator.h"
#include "cohort/distribute/input/input_context.h"

namespace cohort::internal {

// The batch that a step takes.
struct BatchPlace {
  int64_t pass = 0;
  // In the order of the pass; kNext: whichever is the worker's next.
  int64_t number = kNext;
  // The coordinator's position at the beginning of the pass, with the seeds of its shuffles: every
  // worker has the same order. Empty: the worker's own.
  std::string start = "";

  static constexpr int64_t kNext = -1;
};

// Every worker can read the whole pass; of numbered batches it takes those that it is given, and
// passes over the others. So each batch is taken once, whatever the number of workers, and by
// another one if its worker is lost.
// Thread safety: none.
class WorkerInput {
 public:
  using MakeDataset =
      std::function<distribute::DistributedDataset(const distribute::InputContext&)>;
  using Batch = distribute::PerReplica<Structure>;

  // Makes the dataset when it is first needed.
  WorkerInput(MakeDataset make, const distribute::InputContext& context);

  // Nothing if the pass has no such batch. Errors: those of the dataset; InvalidArgument (the
  // dataset is not the coordinator's).
  std::optional<Batch> take(const BatchPlace& place);

 private:
  void begin(const BatchPlace& place);
  std::optional<Batch> read(int64_t number);

  const MakeDataset make_;
  const distribute::InputContext context_;
  std::optional<distribute::DistributedDataset> dataset_;
  std::optional<distribute::DistributedIterator> iterator_;
  int64_t pass_ = 0;  // the iterator's
  std::string start_;
  int64_t next_ = 0;  // the number of the batch that it reads next
};

}  // namespace cohort::internal

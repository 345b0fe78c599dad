// What the replicas of a closure's step run.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "cohort/distribute/step/step_call.h"
#include "cohort/parameter_server/variables/closure_context.h"
#include "cohort/parameter_server/variables/read_cache.h"

namespace cohort::internal {

// The closure is the current one on the threads of all replicas. It is a copy, which a replica that
// the step has given up on may need for longer than the closure runs.
class ClosureFrame final : public RunFrame {
 public:
  ClosureFrame(std::shared_ptr<RunFrame> frame, const ClosureContext& closure)
      : frame_(std::move(frame)), closure_(closure) {}

  void call(distribute::ReplicaContext& context, size_t local_replica) override {
    const ScopedClosure scoped(closure_);
    CachedReads* const reads =
        closure_.reads == nullptr ? cached_reads() : &closure_.reads->at(local_replica);
    const ScopedCachedReads cached(reads);
    frame_->call(context, local_replica);
  }
  // How many the closure has made by now, those of the step included.
  uint64_t assignments() { return closure_.assignments_so_far(); }

 private:
  const std::shared_ptr<RunFrame> frame_;
  ClosureContext closure_;
};

}  // namespace cohort::internal

// A push that has been sent to ps tasks, with what was asked for in the same calls.
#pragma once

#include <exception>
#include <functional>
#include <vector>

#include "cohort/cluster/rpc/channel.h"
#include "cohort/core/threads/synchronized.h"
#include "cohort/parameter_server/store/variable_store.h"

namespace cohort::internal {

// Thread safety: any thread.
class PushUnderWay {
 public:
  // What one ps task was asked for, as places in Values.
  struct Asked {
    int ps = 0;
    std::vector<size_t> shards = {};
    std::vector<size_t> rows = {};
  };
  explicit PushUnderWay(std::vector<Asked> asked);

  // The answer of the ps task asked[i]; once for each.
  void answered(size_t i, rpc::CallResult result);

  // Waits until all ps tasks have answered (each call has its deadline). Returns the first one's
  // error that has failed; null: all have applied the push.
  std::exception_ptr wait() const;
  // Calls `fn` with that error when all have answered, maybe at once, on whichever thread brings
  // the last answer; it must not block.
  void on_end(std::function<void(const std::exception_ptr&)> fn);

  struct Values {
    std::vector<VariableStore::Value> shards;
    std::vector<VariableStore::Value> rows;
  };
  // In the order in which they were asked for. After wait() without an error.
  // Errors: DataLoss (a ps task has answered with something else).
  Values values() const;

 private:
  struct Answers {
    std::exception_ptr error() const;

    size_t left = 0;
    std::vector<rpc::CallResult> results = {};  // of asked_
    std::vector<std::function<void(const std::exception_ptr&)>> waiting = {};
  };

  const std::vector<Asked> asked_;
  Synchronized<Answers> answers_;
};

}  // namespace cohort::internal

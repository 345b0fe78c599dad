// What a coordinator asks of a worker, as messages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cohort/cluster/rpc/message.h"
#include "cohort/core/structure/structure.h"

namespace cohort::internal {

// The most bytes of arguments or a result.
inline constexpr size_t kMostClosureBytes = size_t{2} << 30;

// What a worker makes for the closures that name it.
enum class InputKind : uint8_t { kIterator, kValue };

// A closure's argument that is a value of the worker's. Where it is the only argument, place is
// kOnlyArgument and it is taken as the arguments themselves.
struct WorkerValue {
  static constexpr uint64_t kOnlyArgument = ~uint64_t{0};
  uint64_t place = 0;
  uint64_t input = 0;
};

struct RunClosure {
  std::string function;
  uint64_t id = 0;
  uint64_t forget_below = 0;
  uint64_t session = 0;                  // coordinator_fence.h
  std::vector<uint64_t> inputs = {};     // of this worker, which the function takes first
  Structure arguments = {};              // a tuple
  std::vector<WorkerValue> values = {};  // that take the place of arguments
  // The number within the session, from 0: the worker runs closures in this order, in whichever
  // they arrive.
  uint64_t sequence = 0;
  bool caches_reads = false;  // it was scheduled in a scope of CachedVariableReads
};

// Makes this worker's input: a new pass over what the function returns, or that itself. Also drops
// or reads it, by its number.
struct MakeInput {
  std::string function;
  uint64_t input = 0;
  uint64_t session = 0;
  InputKind kind = InputKind::kIterator;
};

// Errors: DataLoss, InvalidArgument (a message that is none of these).
rpc::Message encode(const RunClosure& request);
RunClosure decode_run_closure(const rpc::Message& message);
rpc::Message encode(const MakeInput& request);
MakeInput decode_make_input(const rpc::Message& message);

}  // namespace cohort::internal

#include "cohort/distribute/step/function.h"

#include "cohort/core/error.h"

namespace cohort::internal {

using distribute::PerReplica;
using distribute::PerReplicaSpec;

void check_argument(const ArgumentSpec& spec, size_t index, const Structure& argument) {
  const auto* expected = std::get_if<StructureSpec>(&spec);
  if (expected == nullptr) {
    throw InvalidArgumentError(str("argument ", index, " is ", argument,
                                   ", but input_signature has ", std::get<PerReplicaSpec>(spec)));
  }
  if (const auto mismatch = expected->first_mismatch(argument)) {
    throw InvalidArgumentError(
        str("argument ", index, " does not fit input_signature: ", *mismatch));
  }
}

void check_argument(const ArgumentSpec& spec, size_t index, const PerReplica<Structure>& argument) {
  const auto* expected = std::get_if<PerReplicaSpec>(&spec);
  if (expected == nullptr) {
    if (argument.size() == 1) return check_argument(spec, index, argument.value(0));
    throw InvalidArgumentError(str("argument ", index, " has ", argument.size(),
                                   " components, but input_signature has ",
                                   std::get<StructureSpec>(spec)));
  }
  if (argument.size() != expected->num_replicas) {
    throw InvalidArgumentError(str("argument ", index, " has ", argument.size(),
                                   " components, but input_signature has ",
                                   expected->num_replicas));
  }
  for (size_t replica = 0; replica < argument.size(); ++replica) {
    if (const auto mismatch = expected->component.first_mismatch(argument.value(replica))) {
      throw InvalidArgumentError(str("argument ", index, " does not fit input_signature: replica ",
                                     replica, ": ", *mismatch));
    }
  }
}

void check_argument_count(size_t expected, size_t found) {
  if (expected == found) return;
  throw InvalidArgumentError(
      str("the call has ", found, " arguments, but input_signature has ", expected));
}

void throw_cannot_check(size_t index) {
  throw InvalidArgumentError(str(
      "argument ", index,
      " has a type that input_signature cannot describe: it describes tensors, strings, numbers, "
      "Structures and PerReplica of them"));
}

}  // namespace cohort::internal

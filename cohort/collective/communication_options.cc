#include "cohort/collective/communication_options.h"

#include <string>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::distribute::experimental {
namespace {

using internal::str;

constexpr std::pair<std::string_view, CommunicationImplementation> kNames[] = {
    {"AUTO", CommunicationImplementation::AUTO},
    {"RING", CommunicationImplementation::RING},
    {"NCCL", CommunicationImplementation::NCCL},
};

[[noreturn]] void throw_unknown(const std::string& which) {
  std::string known;
  for (const auto& [name, value] : kNames) known += str(known.empty() ? "" : ", ", name);
  throw InvalidArgumentError(
      str("there is no communication implementation ", which, "; there are ", known));
}

}  // namespace

CommunicationImplementation communication_implementation(std::string_view name) {
  const std::string upper = internal::upper(name);
  for (const auto& [known, value] : kNames) {
    if (upper == known) return value;
  }
  throw_unknown(internal::quoted(name));
}

std::string_view communication_implementation_name(CommunicationImplementation value) {
  for (const auto& [name, known] : kNames) {
    if (value == known) return name;
  }
  throw_unknown(str("with the number ", static_cast<int>(value)));
}

void CommunicationOptions::check() const {
  if (bytes_per_pack < 0) {
    throw InvalidArgumentError(str("bytes_per_pack is ", bytes_per_pack,
                                   "; it is a number of bytes, or 0 where Cohort chooses"));
  }
  if (timeout.count() < 0) {
    throw InvalidArgumentError(str("timeout is ", timeout.count(),
                                   " ms; it cannot be negative, and 0 is for none of its own"));
  }
  communication_implementation_name(implementation);
}

CommunicationOptions CommunicationOptions::merged_with(const CommunicationOptions& call) const {
  CommunicationOptions merged = *this;
  if (call.bytes_per_pack != 0) merged.bytes_per_pack = call.bytes_per_pack;
  if (call.timeout.count() != 0) merged.timeout = call.timeout;
  if (call.implementation != CommunicationImplementation::AUTO) {
    merged.implementation = call.implementation;
  }
  merged.trusted_network = trusted_network || call.trusted_network;
  return merged;
}

}  // namespace cohort::distribute::experimental

#include "cohort/parameter_server/leadership/leadership_message.h"

#include <limits>

#include "cohort/core/bytes/wire.h"
#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

constexpr uint64_t kMostGenerations = uint64_t{1} << (63 - kSessionNumberBits);

int64_t generation_in(uint64_t number) {
  if (number < kMostGenerations) return static_cast<int64_t>(number);
  throw InvalidArgumentError(
      str("a coordinator of generation ", number, ": there are only ", kMostGenerations));
}

}  // namespace

rpc::Message encode(const LeaderClaim& claim) {
  WireWriter out;
  out.varint(1, static_cast<uint64_t>(claim.generation)).varint(2, claim.session);
  out.varint(3, claim.origin.program).varint(4, claim.origin.made);
  return {.control = out.str()};
}

LeaderClaim decode_leader_claim(const rpc::Message& message) {
  LeaderClaim claim;
  WireReader in(message.control, "a coordinator's claim");
  while (in.next()) {
    if (in.field() == 1) claim.generation = generation_in(in.varint());
    if (in.field() == 2) claim.session = in.varint();
    if (in.field() == 3) claim.origin.program = in.varint();
    if (in.field() == 4) claim.origin.made = in.varint();
  }
  return claim;
}

rpc::Message encode(const RefuseWorker& request) {
  WireWriter out;
  out.varint(1, static_cast<uint64_t>(request.generation))
      .varint(2, static_cast<uint64_t>(request.worker))
      .varint(3, request.below);
  return {.control = out.str()};
}

RefuseWorker decode_refuse_worker(const rpc::Message& message) {
  RefuseWorker request;
  WireReader in(message.control, "the refusal of a worker");
  while (in.next()) {
    if (in.field() == 1) request.generation = generation_in(in.varint());
    if (in.field() == 2) {
      const uint64_t worker = in.varint();
      if (worker > static_cast<uint64_t>(std::numeric_limits<int>::max())) {
        throw InvalidArgumentError(str("there is no worker ", worker));
      }
      request.worker = static_cast<int>(worker);
    }
    if (in.field() == 3) request.below = in.varint();
  }
  return request;
}

}  // namespace cohort::internal

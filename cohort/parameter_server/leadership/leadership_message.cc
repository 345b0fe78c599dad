#include "cohort/parameter_server/leadership/leadership_message.h"

#include "cohort/core/bytes/fields.h"
#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

void check_generation(int64_t generation) {
  constexpr int64_t kMostGenerations = int64_t{1} << (63 - kSessionNumberBits);
  if (generation >= 0 && generation < kMostGenerations) return;
  throw InvalidArgumentError(
      str("a coordinator of generation ", generation, ": there are only ", kMostGenerations));
}

void check_worker(int worker) {
  if (worker < 0) throw InvalidArgumentError(str("there is no worker ", worker));
}

}  // namespace

void fields(auto& f, LeaderClaim& claim) {
  f(1, claim.generation, check_generation);
  f(2, claim.session);
  f(3, claim.origin.program);
  f(4, claim.origin.made);
}

void fields(auto& f, RefuseWorker& request) {
  f(1, request.generation, check_generation);
  f(2, request.worker, check_worker);
  f(3, request.below);
}

rpc::Message encode(const LeaderClaim& claim) { return {.control = encode_fields(claim)}; }
LeaderClaim decode_leader_claim(const rpc::Message& message) {
  return decode_fields<LeaderClaim>(message.control, "a coordinator's claim");
}

rpc::Message encode(const RefuseWorker& request) { return {.control = encode_fields(request)}; }
RefuseWorker decode_refuse_worker(const rpc::Message& message) {
  return decode_fields<RefuseWorker>(message.control, "the refusal of a worker");
}

}  // namespace cohort::internal

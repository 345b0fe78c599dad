#include "cohort/collective/network/rpc_envelope.h"

#include "cohort/core/bytes/fields.h"
#include "cohort/core/error.h"

namespace cohort::collective {

void fields(auto& f, RpcEnvelope& envelope) {
  f(1, envelope.group, [](std::string_view name) {
    constexpr size_t kMostNameBytes = 256;
    if (name.size() <= kMostNameBytes) return;
    throw DataLossError("a collective call's envelope: its group's name is too long");
  });
  f(2, envelope.generation);
  f(3, envelope.session, internal::kFixed);
  f(4, envelope.rank, [](int rank) {
    if (rank < 0) throw DataLossError("a collective call's envelope: its rank is none");
  });
  f(5, envelope.sequence);
}

std::string RpcEnvelope::encode() const { return internal::encode_fields(*this); }

RpcEnvelope RpcEnvelope::decode(std::string_view bytes) {
  return internal::decode_fields<RpcEnvelope>(bytes, "a collective call's envelope");
}

}  // namespace cohort::collective

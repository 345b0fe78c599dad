#include "cohort/collective/network/rpc_envelope.h"

#include <limits>

#include "cohort/core/bytes/wire.h"

namespace cohort::collective {

std::string RpcEnvelope::encode() const {
  internal::WireWriter out;
  out.bytes(1, group).varint(2, static_cast<uint64_t>(generation)).fixed64(3, session);
  out.varint(4, static_cast<uint64_t>(rank)).varint(5, sequence);
  return out.str();
}

RpcEnvelope RpcEnvelope::decode(std::string_view bytes) {
  constexpr size_t kMostNameBytes = 256;
  RpcEnvelope envelope;
  internal::WireReader in(bytes, "a collective call's envelope");
  while (in.next()) {
    switch (in.field()) {
      case 1:
        if (in.bytes().size() > kMostNameBytes) in.fail("its group's name is too long");
        envelope.group = in.bytes();
        break;
      case 2:
        envelope.generation = static_cast<int64_t>(in.varint());
        break;
      case 3:
        envelope.session = in.fixed64();
        break;
      case 4: {
        const uint64_t rank = in.varint();
        if (rank > std::numeric_limits<int>::max()) in.fail("its rank is none");
        envelope.rank = static_cast<int>(rank);
        break;
      }
      case 5:
        envelope.sequence = in.varint();
        break;
      default:
        break;
    }
  }
  return envelope;
}

}  // namespace cohort::collective

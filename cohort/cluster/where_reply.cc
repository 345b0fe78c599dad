#include "cohort/cluster/where_reply.h"

#include "cohort/cluster/membership/limits.h"
#include "cohort/core/bytes/fields.h"

namespace cohort::internal {

void fields(auto& f, WhereReply& reply) {
  f(1, reply.self);
  f(2, reply.coordinator);
  f(3, reply.address, membership::AtMostText{"an address", membership::kMostNameBytes});
}

std::string WhereReply::encode() const { return encode_fields(*this); }
WhereReply WhereReply::decode(std::string_view bytes) {
  return decode_fields<WhereReply>(bytes, "where the cluster is coordinated");
}

}  // namespace cohort::internal

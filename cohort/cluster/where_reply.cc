#include "cohort/cluster/where_reply.h"

#include "cohort/cluster/membership/fields.h"

namespace cohort::internal {

std::string WhereReply::encode() const {
  return membership::Fields()
      .item(1, membership::encode_task(self))
      .item(2, membership::encode_task(coordinator))
      .bytes(3, address)
      .str();
}

WhereReply WhereReply::decode(std::string_view bytes) {
  WhereReply reply;
  membership::read(bytes, "where the cluster is coordinated", [&](WireReader& in) {
    switch (in.field()) {
      case 1:
        reply.self = membership::decode_task(in.bytes());
        break;
      case 2:
        reply.coordinator = membership::decode_task(in.bytes());
        break;
      case 3:
        reply.address = membership::text_of("an address", in.bytes(), membership::kMostNameBytes);
        break;
      default:
        break;
    }
  });
  return reply;
}

}  // namespace cohort::internal

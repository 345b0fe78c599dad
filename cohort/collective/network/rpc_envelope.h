// The header of the bytes that a task sends to another one of its group.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cohort::collective {

struct RpcEnvelope {
  std::string group = "";
  int64_t generation = 0;
  // A number that the receiver has drawn for this group, so that it takes no message for another
  // group for one of this.
  uint64_t session = 0;
  int rank = 0;           // the sender's
  uint64_t sequence = 0;  // numbers what the sender sends this receiver; of a message only

  std::string encode() const;
  // Errors: DataLoss (no envelope).
  static RpcEnvelope decode(std::string_view bytes);
};

}  // namespace cohort::collective

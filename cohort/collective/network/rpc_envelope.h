// What stands before the bytes that a task sends another of its group.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cohort::collective {

struct RpcEnvelope {
  std::string group = "";
  int64_t generation = 0;
  // The receiver has drawn it for this group, so that no message for another group is taken for one
  // of this.
  uint64_t session = 0;
  int rank = 0;           // the sender's
  uint64_t sequence = 0;  // numbers what the sender sends this receiver; of a message only

  std::string encode() const;
  // Errors: DataLoss (no envelope).
  static RpcEnvelope decode(std::string_view bytes);
};

}  // namespace cohort::collective

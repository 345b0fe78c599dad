// What a decoder of messages must keep to, whatever it is given.
#pragma once

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>

#include "cohort/cluster/rpc/message.h"
#include "cohort/core/error.h"
#include "tests/fuzz/input_reader.h"

namespace cohort::fuzz {

inline void require_of_message(bool holds, std::string_view property) {
  if (holds) return;
  std::cerr << "does not hold: " << property << '\n';
  std::abort();
}

// Control bytes, then pieces of bulk bytes.
inline internal::rpc::Message read_message(InputReader& in) {
  internal::rpc::Message message{.control = std::string(in.bytes(4095))};
  while (!in.empty()) {
    const auto piece = std::make_shared<const std::string>(in.bytes(255));
    message.bulk.push_back({piece, piece->data(), piece->size()});
  }
  return message;
}

inline std::string bytes_of(const internal::rpc::Message& message) {
  std::string all = message.control;
  for (const auto& piece : message.bulk) all.append("|").append(piece.data, piece.size);
  return all;
}

// It is refused with an error of the two classes, or it is what it says: written again and read
// again, it stays the same.
template <class Decode>
void check_decoder(const internal::rpc::Message& message, Decode decode) {
  try {
    const internal::rpc::Message written = encode(decode(message));
    try {
      const internal::rpc::Message again = encode(decode(written));
      require_of_message(bytes_of(again) == bytes_of(written), "written as it was read");
    } catch (const Error& error) {
      std::cerr << error.what() << '\n';
      require_of_message(false, "what was read can be written and read again");
    }
  } catch (const Error& error) {
    require_of_message(error.code() == Code::kDataLoss || error.code() == Code::kInvalidArgument,
                       "an error of the two classes");
  }
}

}  // namespace cohort::fuzz

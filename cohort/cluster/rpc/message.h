// What a call carries: encoded fields, and bulk bytes that are never copied into them.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace cohort::internal::rpc {

// Memory that `owner` keeps alive. Thread safety: immutable.
struct Bytes {
  std::shared_ptr<const void> owner;
  const char* data = nullptr;
  size_t size = 0;
};

struct Message {
  std::string control;           // fields in protobuf's wire format (core/wire.h)
  std::vector<Bytes> bulk = {};  // tensors, in the order that `control` gives

  size_t bulk_bytes() const {
    size_t sum = 0;
    for (const Bytes& bytes : bulk) sum += bytes.size;
    return sum;
  }
};

}  // namespace cohort::internal::rpc

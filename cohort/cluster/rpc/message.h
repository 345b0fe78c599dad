// The content of a call: encoded fields, and bulk bytes that are never copied into them.
#pragma once

#include <cstddef>
#include <exception>
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

// How a call ended: `error` is set, or `reply` counts.
struct CallResult {
  std::exception_ptr error;
  Message reply;
};

}  // namespace cohort::internal::rpc

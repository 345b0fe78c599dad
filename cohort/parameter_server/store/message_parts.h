// What the messages of a store are made of.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/cluster/rpc/message.h"
#include "cohort/core/bytes/wire.h"
#include "cohort/core/error.h"
#include "cohort/core/structure/structure.h"
#include "cohort/distribute/tasks/structure_message.h"

namespace cohort::internal {

// A message's fields are an encoded request, and the form of its tensors, whose bytes are the bulk.
enum StoreField : uint32_t { kStoreRequest = 1, kStoreTensors = 2 };

// The tensors of a message, in the order in which they are written.
class TensorWriter {
 public:
  void add(const Tensor& tensor) { tensors_.emplace_back(tensor); }
  rpc::Message message(const WireWriter& request) && {
    rpc::Message message = to_message(Structure::make_tuple(std::move(tensors_)));
    WireWriter control;
    control.bytes(kStoreRequest, request.str()).bytes(kStoreTensors, message.control);
    message.control = control.str();
    return message;
  }

 private:
  std::vector<Structure> tensors_;
};

// Reads them in that order. Errors: those of the decoders (store_message.h).
class StoreMessageReader {
 public:
  StoreMessageReader(const rpc::Message& message, std::string what) : what_(std::move(what)) {
    rpc::Message tensors{.control = "", .bulk = message.bulk};
    WireReader in(message.control, what_);
    while (in.next()) {
      if (in.field() == kStoreRequest) request_ = in.bytes();
      if (in.field() == kStoreTensors) tensors.control = in.bytes();
    }
    tensors_ = to_structure(tensors, what_);
    if (!tensors_.is_tuple()) fail("has no list of tensors");
  }

  WireReader request() const { return {request_, what_}; }
  WireReader part(std::string_view bytes) const { return {bytes, what_}; }
  const std::string& what() const { return what_; }

  Tensor next_tensor() {
    if (next_ >= tensors_.size()) fail("has too few tensors");
    const Structure& entry = tensors_[next_++];
    if (!entry.is_leaf() || !entry.leaf().is_tensor()) fail("has something else than a tensor");
    return entry.tensor();
  }
  [[noreturn]] void fail(const char* problem) const {
    throw InvalidArgumentError(str(what_, " ", problem));
  }

 private:
  std::string what_;
  std::string request_;
  Structure tensors_;
  size_t next_ = 0;
};

inline double as_double(uint64_t bits) { return std::bit_cast<double>(bits); }
inline uint64_t as_bits(double value) { return std::bit_cast<uint64_t>(value); }

}  // namespace cohort::internal

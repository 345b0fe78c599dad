// What the messages of a store are made of.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/cluster/rpc/message.h"
#include "cohort/core/bytes/fields.h"
#include "cohort/core/error.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/distribute/tasks/structure_message.h"
#include "cohort/parameter_server/store/shard_key.h"

namespace cohort::internal {

// A message's fields are an encoded request, and the form of its tensors, whose bytes are the bulk.
struct StoreFields {
  std::string_view request;
  std::string_view tensors;
};
void fields(auto& f, StoreFields& message) {
  f(1, message.request);
  f(2, message.tensors);
}

void fields(auto& f, ShardKey& key) {
  f(1, key.variable);
  f(2, key.shard);
}

// The tensors of a message, in the order in which they are written.
class TensorWriter {
 public:
  void add(const Tensor& tensor) { tensors_.push_back(tensor); }
  rpc::Message message(std::string_view request) && {
    rpc::Message message = to_message(tensors_);
    message.control = encode_fields(StoreFields{.request = request, .tensors = message.control});
    return message;
  }

 private:
  std::vector<Tensor> tensors_;
};

// Reads them in that order. Errors: those of the decoders (store_message.h).
class StoreMessageReader {
 public:
  // `message` must outlive the reader, and what the views of its requests lie in.
  StoreMessageReader(const rpc::Message& message, std::string what) : what_(std::move(what)) {
    const auto fields = decode_fields<StoreFields>(message.control, what_);
    request_ = fields.request;
    tensors_ = to_tensors(fields.tensors, message.bulk, what_);
  }

  template <class Request>
  Request request() const {
    return decode_fields<Request>(request_, what_);
  }

  Tensor next_tensor() {
    if (next_ >= tensors_.size()) fail("has too few tensors");
    return std::move(tensors_[next_++]);
  }
  [[noreturn]] void fail(const char* problem) const {
    throw InvalidArgumentError(str(what_, " ", problem));
  }

 private:
  std::string what_;
  std::string_view request_;
  std::vector<Tensor> tensors_;
  size_t next_ = 0;
};

}  // namespace cohort::internal

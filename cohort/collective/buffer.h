// Memory that a collective call reads or writes.
#pragma once

#include <c10/core/Stream.h>

#include <cstdint>

#include "cohort/core/structure/tensor.h"

namespace cohort::collective {

// Memory that belongs to the caller and must stay valid until the call's Work is done.
struct Buffer {
  void* data = nullptr;
  int64_t count = 0;  // elements
  DType dtype = float32;
  // The device of `data`, and the stream after whose pending work it may be read.
  c10::Stream stream{c10::Stream::DEFAULT, c10::Device(c10::kCPU)};

  int64_t bytes() const { return count * static_cast<int64_t>(c10::elementSize(dtype)); }
  char* at(int64_t element) const {
    return static_cast<char*>(data) + element * static_cast<int64_t>(c10::elementSize(dtype));
  }
};

// Gives memory out. Thread safety: any thread.
class BufferSource {
 public:
  virtual ~BufferSource() = default;
  // Memory that a backend need not copy (shared, registered). Freed with this object.
  virtual Buffer buffer(int64_t bytes) = 0;
};

}  // namespace cohort::collective

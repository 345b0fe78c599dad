// Memory that a plan keeps.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace cohort::internal::plan {

// Uninitialized elements at an address that vectors like; may be empty.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(int64_t size) : data_(size > 0 ? allocate(static_cast<size_t>(size)) : nullptr) {}

  T* data() const { return data_.get(); }

 private:
  static constexpr size_t kAlignment = 64;
  struct Free {
    void operator()(T* data) const { std::free(data); }
  };
  static T* allocate(size_t size) {
    const size_t bytes = (size * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
    void* const data = std::aligned_alloc(kAlignment, bytes);
    if (data == nullptr) throw std::bad_alloc();
    return static_cast<T*>(data);
  }

  std::unique_ptr<T, Free> data_;
};

}  // namespace cohort::internal::plan

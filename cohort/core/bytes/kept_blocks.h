// Memory of small objects that are made and destroyed in every step: a thread keeps the blocks that
// it frees for the next objects of their size.
//
//   struct Node {
//     static void* operator new(size_t bytes) { return take_block(bytes); }
//     static void operator delete(void* node, size_t bytes) { give_back_block(node, bytes); }
//   };
//   std::shared_ptr<Node>(new Node, std::default_delete<Node>(), KeptAllocator<Node>());
#pragma once

#include <cstddef>

namespace cohort::internal {

// Allocates as operator new does: aligned for any fundamental type.
// Errors: std::bad_alloc.
// Thread safety: any thread, and any other may give the block back.
void* take_block(size_t bytes);
// `bytes`: the number that was passed to take_block. At most 32 blocks of a size are kept, none
// above 2 KB.
void give_back_block(void* block, size_t bytes) noexcept;

// For containers, and for the counters of shared pointers.
template <class T>
struct KeptAllocator {
  using value_type = T;

  KeptAllocator() = default;
  template <class Other>
  KeptAllocator(const KeptAllocator<Other>&) {}

  T* allocate(size_t count) { return static_cast<T*>(take_block(count * sizeof(T))); }
  void deallocate(T* values, size_t count) noexcept { give_back_block(values, count * sizeof(T)); }

  template <class Other>
  bool operator==(const KeptAllocator<Other>&) const {
    return true;
  }
};

}  // namespace cohort::internal

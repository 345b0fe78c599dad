#include "cohort/core/bytes/kept_blocks.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <set>
#include <thread>
#include <vector>

namespace cohort::internal {
namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr bool kKeeps = false;
#else
constexpr bool kKeeps = true;
#endif

TEST(KeptBlocksTest, AThreadGetsWhatItGaveBackLast) {
  void* const first = take_block(100);
  void* const second = take_block(100);
  EXPECT_NE(first, second);
  give_back_block(first, 100);
  give_back_block(second, 100);
  void* const again = take_block(128);  // of the same class of sizes
  EXPECT_EQ(again == second, kKeeps);
  give_back_block(again, 128);
}

TEST(KeptBlocksTest, BlocksInUseAreDisjoint) {
  struct Block {
    unsigned char* bytes;
    size_t size;
  };
  std::vector<Block> blocks;
  for (int round = 0; round < 3; ++round) {
    for (size_t size = 0; size < 2500; size += 61) {
      auto* const bytes = static_cast<unsigned char*>(take_block(size));
      std::memset(bytes, static_cast<int>(blocks.size()), size);
      blocks.push_back({bytes, size});
    }
    for (size_t i = 0; i < blocks.size(); ++i) {
      for (size_t at = 0; at < blocks[i].size; ++at) {
        ASSERT_EQ(blocks[i].bytes[at], static_cast<unsigned char>(i));
      }
      give_back_block(blocks[i].bytes, blocks[i].size);
    }
    blocks.clear();
  }
}

TEST(KeptBlocksTest, BlocksMayEndOnAnotherThread) {
  std::vector<void*> blocks;
  for (int i = 0; i < 100; ++i) blocks.push_back(take_block(64));  // more than a thread keeps
  std::thread([&] {
    for (void* block : blocks) give_back_block(block, 64);
    std::set<void*> taken;
    for (int i = 0; i < 100; ++i) taken.insert(take_block(64));
    EXPECT_EQ(taken.size(), 100u);
    for (void* block : taken) give_back_block(block, 64);
  }).join();
}

TEST(KeptBlocksTest, ObjectsMayOutliveWhatAThreadKeeps) {
  std::thread([] {
    // Destroyed after what the thread keeps, which comes to be later.
    thread_local std::shared_ptr<int> last;
    last = std::shared_ptr<int>(nullptr);
    give_back_block(take_block(64), 64);
    last = std::allocate_shared<int>(KeptAllocator<int>(), 7);
  }).join();
}

TEST(KeptBlocksTest, AllocatesForContainers) {
  std::vector<int64_t, KeptAllocator<int64_t>> numbers;
  for (int64_t i = 0; i < 1000; ++i) numbers.push_back(i);
  for (int64_t i = 0; i < 1000; ++i) ASSERT_EQ(numbers[static_cast<size_t>(i)], i);
}

}  // namespace
}  // namespace cohort::internal

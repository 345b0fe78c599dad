#include "memory_limit.h"

#include <barrier>
#include <stdexcept>
#include <thread>
#include <vector>

#include "cohort/core/cpu/vector_clones.h"
#include "timing.h"

namespace bench {
namespace {

using Buffers = std::vector<std::vector<float>>;

template <int kRanks>
COHORT_VECTOR_CLONES void add_up(float* const* buffers, int64_t begin, int64_t end) {
  float* __restrict first = buffers[0];
  float* __restrict second = buffers[1];
  if constexpr (kRanks == 2) {
    for (int64_t i = begin; i < end; ++i) first[i] = second[i] = first[i] + second[i];
  } else {
    float* __restrict third = buffers[2];
    float* __restrict fourth = buffers[3];
    for (int64_t i = begin; i < end; ++i) {
      first[i] = second[i] = third[i] = fourth[i] = first[i] + second[i] + third[i] + fourth[i];
    }
  }
}

// Threads that wait for each other before and after each pass.
class Cores {
 public:
  Cores(int count, Buffers& buffers) : meeting_(count) {
    for (std::vector<float>& buffer : buffers) pointers_.push_back(buffer.data());
    size_ = static_cast<int64_t>(buffers[0].size());
    for (int i = 0; i < count; ++i) slices_.push_back(size_ * i / count);
    slices_.push_back(size_);
    for (int i = 1; i < count; ++i) {
      threads_.emplace_back([this, i] {
        for (meeting_.arrive_and_wait(); !ended_; meeting_.arrive_and_wait()) {
          work(i);
          meeting_.arrive_and_wait();
        }
      });
    }
  }
  ~Cores() {
    ended_ = true;
    meeting_.arrive_and_wait();
    for (std::thread& thread : threads_) thread.join();
  }

  void pass() {
    meeting_.arrive_and_wait();
    work(0);
    meeting_.arrive_and_wait();
  }

 private:
  void work(int core) {
    const int64_t begin = slices_[static_cast<size_t>(core)];
    const int64_t end = slices_[static_cast<size_t>(core) + 1];
    pointers_.size() == 2 ? add_up<2>(pointers_.data(), begin, end)
                          : add_up<4>(pointers_.data(), begin, end);
  }

  std::barrier<> meeting_;
  std::vector<float*> pointers_;
  std::vector<int64_t> slices_;
  int64_t size_ = 0;
  bool ended_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

double time_memory_limit(int ranks, int64_t bytes, double seconds) {
  if (ranks != 2 && ranks != 4) throw std::invalid_argument("the limit is known for 2 or 4 ranks");
  Buffers buffers(static_cast<size_t>(ranks),
                  std::vector<float>(static_cast<size_t>(bytes) / sizeof(float)));
  Cores cores(static_cast<int>(std::thread::hardware_concurrency()), buffers);
  return time_steps(seconds, [&](int64_t) { cores.pass(); });
}

}  // namespace bench

#include "cohort/collective/add_in_tree.h"

#include <c10/util/SmallVector.h>
#include <c10/util/complex.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

#include "cohort/collective/slices.h"
#include "cohort/core/cpu/vector_clones.h"

namespace cohort::collective {
namespace {

// Values are added up block by block, so that the sums which wait for others stay in the
// first-level cache. Each has so much.
constexpr int64_t kBlockBytes = 4096;
// Deep enough for any tree: each sum that waits is of a node larger than the next.
constexpr int64_t kMostWaiting = 33;

// Takes the next sources, which are a whole subtree, and then makes so many of the additions.
struct TreeStep {
  size_t first = 0;
  int sources = 1;
  int additions = 0;
};
using TreeSteps = c10::SmallVector<TreeStep, 16>;

struct TreeCall {
  std::span<void* const> targets;
  std::span<const void* const> sources;
  TreeSteps steps;
  int64_t count = 0;
};

// Whether the `size` sources from `first` on, a power of two of them, are added to each other.
bool is_subtree(const Additions& additions, size_t first, size_t size) {
  if (first + size > additions.size()) return false;
  for (size_t i = 1; i < size; ++i) {
    const int within = std::countr_zero(i);
    if (additions[first + i - 1] != within) return false;
  }
  return additions[first + size - 1] >= std::countr_zero(size);
}

TreeSteps steps_of(std::span<const void* const> sources, const Additions& additions, int most) {
  TreeSteps steps;
  for (size_t first = 0; first < sources.size();) {
    size_t size = static_cast<size_t>(most);
    const auto has_all = [&] {
      return std::find(sources.begin() + static_cast<std::ptrdiff_t>(first),
                       sources.begin() + static_cast<std::ptrdiff_t>(first + size),
                       nullptr) == sources.begin() + static_cast<std::ptrdiff_t>(first + size);
    };
    while (size > 1 && !(is_subtree(additions, first, size) && has_all())) size /= 2;
    const int within = std::countr_zero(size);
    steps.push_back({first, static_cast<int>(size), additions[first + size - 1] - within});
    first += size;
  }
  return steps;
}

// The sum of a whole subtree, in registers. An element depends on those of its own index only, also
// where `out` is one of the sources.
template <class T, int kSources>
COHORT_VECTOR_CLONES void add_subtree(T* out, const void* const* all, int64_t begin,
                                      int64_t count) {
  const T* s[kSources];
  for (int i = 0; i < kSources; ++i) s[i] = static_cast<const T*>(all[i]) + begin;
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (kSources == 2) {
      out[i] = static_cast<T>(s[0][i] + s[1][i]);
    } else if constexpr (kSources == 4) {
      out[i] =
          static_cast<T>(static_cast<T>(s[0][i] + s[1][i]) + static_cast<T>(s[2][i] + s[3][i]));
    } else {
      const auto left =
          static_cast<T>(static_cast<T>(s[0][i] + s[1][i]) + static_cast<T>(s[2][i] + s[3][i]));
      const auto right =
          static_cast<T>(static_cast<T>(s[4][i] + s[5][i]) + static_cast<T>(s[6][i] + s[7][i]));
      out[i] = static_cast<T>(left + right);
    }
  }
}

// The sum of two, written to several places, in one pass over all of them.
template <class T, int kTargets>
COHORT_VECTOR_CLONES void add_two(void* const* targets, int64_t begin, const T* left,
                                  const T* right, int64_t count) {
  T* outs[kTargets];
  for (int k = 0; k < kTargets; ++k) outs[k] = static_cast<T*>(targets[k]) + begin;
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    const auto sum = static_cast<T>(left[i] + right[i]);
    for (int k = 0; k < kTargets; ++k) outs[k][i] = sum;
  }
}

template <class To, class From>
COHORT_VECTOR_CLONES void convert(To* to, const From* from, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<To>(from[i]);
}

// Adds up one block after another. T: of the sources; Sum: of what waits; Out: of the targets.
template <class T, class Sum, class Out>
class BlockAdder {
 public:
  static constexpr bool kReadsInPlace = std::is_same_v<T, Sum>;
  static constexpr int64_t kInBlock = kBlockBytes / static_cast<int64_t>(sizeof(Sum));

  explicit BlockAdder(const TreeCall& call) : call_(call) {}

  void run() {
    const int64_t in_block = waits_in_blocks() ? kInBlock : call_.count;
    for (begin_ = 0; begin_ < call_.count; begin_ += in_block) {
      size_ = std::min(in_block, call_.count - begin_);
      is_handed_out_ = false;
      const Sum* const sum = add_block();
      if (!is_handed_out_) hand_out(sum);
    }
  }

 private:
  Sum* block(int64_t place) { return reinterpret_cast<Sum*>(blocks_.data() + place * kBlockBytes); }
  Out* target(size_t i) const { return static_cast<Out*>(call_.targets[i]) + begin_; }

  // Whether some sum waits for another, or is copied. If not, one pass over all is faster.
  bool waits_in_blocks() const {
    if (!kReadsInPlace || !std::is_same_v<Out, Sum>) return true;
    const auto is_value = [](const TreeStep& step) { return step.sources == 1; };
    const size_t targets = call_.targets.size();
    if (call_.steps.size() == 1) return targets > 1;
    if (targets > 2 && targets != 4) return true;
    return call_.steps.size() > 2 || !std::ranges::all_of(call_.steps, is_value);
  }

  // The sum of a block: where it is; null if there is none.
  const Sum* add_block() {
    int64_t depth = 0;
    for (const TreeStep& step : call_.steps) {
      const bool is_last = &step == &call_.steps.back();
      const Sum* sum = take(step, depth, is_last && step.additions == 0);
      for (int i = 1; i <= step.additions; ++i) {
        --depth;
        sum = add(waiting_[static_cast<size_t>(depth)], sum, depth, is_last && i == step.additions);
      }
      waiting_[static_cast<size_t>(depth++)] = sum;
    }
    return waiting_[0];
  }

  // The last sum of all needs no block.
  Sum* place_of_sum(int64_t depth, bool is_whole) {
    if constexpr (std::is_same_v<Out, Sum>) {
      if (is_whole) return target(0);
    }
    return block(depth);
  }

  const Sum* take(const TreeStep& step, int64_t depth, bool is_whole) {
    const void* const* const sources = call_.sources.data() + step.first;
    if (step.sources == 1) {
      if (sources[0] == nullptr) return nullptr;
      const T* const values = static_cast<const T*>(sources[0]) + begin_;
      if constexpr (kReadsInPlace) {
        return values;
      } else {
        convert(block(depth), values, size_);
        return block(depth);
      }
    }
    Sum* const out = place_of_sum(depth, is_whole);
    if (step.sources == 2) add_subtree<Sum, 2>(out, sources, begin_, size_);
    if (step.sources == 4) add_subtree<Sum, 4>(out, sources, begin_, size_);
    if (step.sources == 8) add_subtree<Sum, 8>(out, sources, begin_, size_);
    return out;
  }

  const Sum* add(const Sum* left, const Sum* right, int64_t depth, bool is_whole) {
    if (right == nullptr) return left;
    if (left == nullptr) {
      // What lies in a deeper block is overwritten by the next sum.
      if (right < block(0) || right >= block(kMostWaiting)) return right;
      std::copy_n(right, size_, block(depth));
      return block(depth);
    }
    if (is_whole && hand_out_sum(left, right)) return left;
    Sum* const out = place_of_sum(depth, is_whole);
    const void* const both[] = {left, right};
    add_subtree<Sum, 2>(out, both, 0, size_);
    return out;
  }

  // Makes the last addition and writes it to all targets, where they are as many as tasks often
  // are.
  bool hand_out_sum(const Sum* left, const Sum* right) {
    if constexpr (std::is_same_v<Out, Sum>) {
      if (call_.targets.size() == 2) {
        add_two<Sum, 2>(call_.targets.data(), begin_, left, right, size_);
        is_handed_out_ = true;
      } else if (call_.targets.size() == 4) {
        add_two<Sum, 4>(call_.targets.data(), begin_, left, right, size_);
        is_handed_out_ = true;
      }
    }
    return is_handed_out_;
  }

  void hand_out(const Sum* sum) {
    const auto bytes = static_cast<size_t>(size_) * sizeof(Out);
    for (size_t i = 0; i < call_.targets.size(); ++i) {
      if (sum == nullptr) {
        std::memset(static_cast<void*>(target(i)), 0, bytes);
      } else if constexpr (std::is_same_v<Out, Sum>) {
        if (target(i) != sum) std::memmove(static_cast<void*>(target(i)), sum, bytes);
      } else {
        convert(target(i), sum, size_);
      }
    }
  }

  const TreeCall& call_;
  int64_t begin_ = 0;
  int64_t size_ = 0;
  bool is_handed_out_ = false;  // the block's sum
  std::array<const Sum*, kMostWaiting> waiting_;
  alignas(64) std::array<char, kMostWaiting * kBlockBytes> blocks_;
};

template <class T>
void add_as(TreeCall& call, const Additions& additions) {
  // To several targets the last two sums are written as they are added.
  size_t most = 8;
  if (call.targets.size() > 1) most = std::min(most, std::bit_ceil(call.sources.size()) / 2);
  call.steps = steps_of(call.sources, additions, static_cast<int>(std::max<size_t>(most, 1)));
  BlockAdder<T, T, T>(call).run();
}

template <class T>
void add_short(TreeCall& call, const Additions& additions, DType of_sums) {
  call.steps = steps_of(call.sources, additions, 1);
  if (of_sums == DType::Float) {
    BlockAdder<T, float, float>(call).run();
  } else {
    BlockAdder<T, float, T>(call).run();
  }
}

}  // namespace

DType sum_dtype(DType dtype) {
  return dtype == DType::Half || dtype == DType::BFloat16 ? DType::Float : dtype;
}

void add_in_tree(std::span<void* const> targets, std::span<const void* const> sources,
                 const Additions& additions, int64_t count, DType dtype, DType of_sums) {
  TreeCall call{targets, sources, {}, count};
  switch (dtype) {
    case DType::Float:
      return add_as<float>(call, additions);
    case DType::Double:
      return add_as<double>(call, additions);
    case DType::ComplexFloat:
      return add_as<c10::complex<float>>(call, additions);
    case DType::ComplexDouble:
      return add_as<c10::complex<double>>(call, additions);
    case DType::Half:
      return add_short<at::Half>(call, additions, of_sums);
    case DType::BFloat16:
      return add_short<at::BFloat16>(call, additions, of_sums);
    case DType::Byte:
      return add_as<uint8_t>(call, additions);
    case DType::Char:
      return add_as<int8_t>(call, additions);
    case DType::Short:
      return add_as<int16_t>(call, additions);
    case DType::Int:
      return add_as<int32_t>(call, additions);
    case DType::Long:
      return add_as<int64_t>(call, additions);
    default:
      check_can_add(dtype);  // throws
  }
}

}  // namespace cohort::collective

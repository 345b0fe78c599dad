// Tokens in the order of their amounts, the most first, of more tokens than memory holds.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/transform/analysis/token_counter.h"

namespace cohort::internal {

// Final is TokenCount or FinalWeight. Thread safety: none.
template <class Final>
class TokenRanking {
 public:
  struct Options {
    size_t memory_limit = 0;                             // bytes, about
    int64_t most = std::numeric_limits<int64_t>::max();  // how many of the first tokens count
  };
  TokenRanking(FileSystem& files, std::string directory, const Options& options)
      : runs_(files, std::move(directory)), options_(options) {}

  // `token` differs from those before. Errors: those of TokenRun::write.
  void add(std::string_view token, const Final& amount);
  // The tokens that were added, or more than the first of them, in order. Once; the ranking must
  // outlive it.
  TokenStreamPtr<Final> ranked();

 private:
  class List;

  size_t bytes() const;
  void make_room();
  void sort();
  // Leaves only the first options_.most entries, which must be sorted.
  void cut();

  TokenRuns<Final, ByRank> runs_;
  const Options options_;
  std::vector<TokenEntry<Final>> entries_;  // their tokens lie in the arena
  std::unique_ptr<TextArena> arena_ = std::make_unique<TextArena>();
};

}  // namespace cohort::internal

// Keeps the calling thread's new variables beside another one: an optimizer's slots lie where their
// variable lies.
#pragma once

namespace cohort::internal {

class VariableImpl;

// The place beside a variable that lies in shards: beside all of them, or whole beside the first.
enum class Colocation { kShardByShard, kWhole };

// nullptr: none.
const VariableImpl* colocated_with();
Colocation colocation();

// During its lifetime, new variables of this thread are kept beside `variable`.
class [[nodiscard]] ScopedColocation {
 public:
  explicit ScopedColocation(const VariableImpl& variable,
                            Colocation how = Colocation::kShardByShard);
  ~ScopedColocation();
  ScopedColocation(const ScopedColocation&) = delete;
  ScopedColocation& operator=(const ScopedColocation&) = delete;

 private:
  const VariableImpl* const previous_;
  const Colocation previous_colocation_;
};

}  // namespace cohort::internal

// Which variable the calling thread's new variables are to be kept beside: an optimizer's slots lie
// where their variable lies.
#pragma once

namespace cohort::internal {

class VariableImpl;

// nullptr: none.
const VariableImpl* colocated_with();

// During its lifetime, new variables of this thread are kept beside `variable`.
class [[nodiscard]] ScopedColocation {
 public:
  explicit ScopedColocation(const VariableImpl& variable);
  ~ScopedColocation();
  ScopedColocation(const ScopedColocation&) = delete;
  ScopedColocation& operator=(const ScopedColocation&) = delete;

 private:
  const VariableImpl* const previous_;
};

}  // namespace cohort::internal

#include "cohort/cluster/membership/limits.h"

#include <algorithm>

#include "cohort/cluster/rpc/text.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/core/threads/bounded_wait.h"

namespace cohort::internal::membership {

void check_name(std::string_view what, std::string_view name, size_t most) {
  if (name.empty()) throw InvalidArgumentError(str(what, " is empty"));
  if (name.size() > most) {
    throw InvalidArgumentError(str(what, ' ', quoted(rpc::printable(rpc::head_of(name, 40))),
                                   "... has ", name.size(), " bytes; at most ", most,
                                   " are allowed"));
  }
  if (!rpc::is_utf8(name)) {
    throw InvalidArgumentError(str(what, ' ', quoted(rpc::printable(name)), " is not UTF-8"));
  }
}

void AtMostText::operator()(std::string_view text) const {
  if (text.size() > most) {
    throw InvalidArgumentError(
        str(what, " has ", text.size(), " bytes; at most ", most, " are allowed"));
  }
  if (!rpc::is_utf8(text)) throw InvalidArgumentError(str(what, " is not UTF-8"));
}

void AtMostBytes::operator()(std::string_view bytes) const {
  if (bytes.size() <= most) return;
  throw ResourceExhaustedError(
      str(what, " has ", bytes.size(), " bytes; at most ", most, " are allowed"));
}

void AtMost::check(size_t size) const {
  if (size < most) return;
  throw InvalidArgumentError(str("a message has more than ", most, ' ', what));
}

Duration bounded(Duration wait) { return std::max(bounded_wait(wait), Duration::zero()); }

void check_index(int index) {
  if (index < 0) throw InvalidArgumentError(str("a task has the index ", index));
}

std::string hex(uint64_t incarnation) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text(16, '0');
  for (size_t i = 16; i-- > 0; incarnation >>= 4) text[i] = kDigits[incarnation & 15];
  return text;
}

}  // namespace cohort::internal::membership

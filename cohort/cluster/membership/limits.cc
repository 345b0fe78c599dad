#include "cohort/cluster/membership/limits.h"

#include "cohort/cluster/rpc/text.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"

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

std::string hex(uint64_t incarnation) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text(16, '0');
  for (size_t i = 16; i-- > 0; incarnation >>= 4) text[i] = kDigits[incarnation & 15];
  return text;
}

}  // namespace cohort::internal::membership

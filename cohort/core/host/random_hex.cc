#include "cohort/core/host/random_hex.h"

#include <sys/random.h>

#include <cerrno>

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {

std::string random_hex(size_t bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  while (text.size() < 2 * bytes) {
    unsigned char byte = 0;
    if (::getrandom(&byte, 1, 0) != 1) {
      if (errno == EINTR) continue;
      throw ResourceExhaustedError(str("the system gives no random numbers: ", errno_text(errno)));
    }
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace cohort::internal

// Every GoogleTest program is linked with this. With COHORT_TEST_LOCALE=de_DE.UTF-8 in the
// environment it runs as a program does that has set that locale for C and C++ before its first
// line.
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <locale>
#include <stdexcept>

namespace {

[[maybe_unused]] const bool is_set = [] {
  const char* const name = std::getenv("COHORT_TEST_LOCALE");
  if (name == nullptr || *name == '\0') return false;
  try {
    std::locale::global(std::locale(name));
  } catch (const std::runtime_error&) {
    std::fprintf(
        stderr,
        "COHORT_TEST_LOCALE: this machine has no locale '%s'; install Debian's locales-all "
        "(scripts/setup does)\n",
        name);
    std::exit(1);
  }
  return true;
}();

}  // namespace

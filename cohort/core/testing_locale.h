// Locales of the program, for tests of what may not depend on them.
//
//   for_each_locale([&] { EXPECT_EQ(name_of(1000), "ckpt-1000"); });
#pragma once

#include <gtest/gtest.h>

#include <clocale>
#include <functional>
#include <locale>
#include <stdexcept>
#include <string>

namespace cohort::internal {

// The program's locale while it lives, for C's functions and for new streams.
class ScopedLocale {
 public:
  explicit ScopedLocale(const std::string& name) : c_before_(std::setlocale(LC_ALL, nullptr)) {
    try {
      before_ = std::locale::global(std::locale(name));
    } catch (const std::runtime_error&) {
      ADD_FAILURE() << "this machine has no locale " << name
                    << "; install Debian's locales-all (scripts/setup does)";
    }
  }
  ~ScopedLocale() {
    std::locale::global(before_);
    std::setlocale(LC_ALL, c_before_.c_str());
  }
  ScopedLocale(const ScopedLocale&) = delete;
  ScopedLocale& operator=(const ScopedLocale&) = delete;

 private:
  const std::string c_before_;
  std::locale before_;
};

// Calls body() where 1234.5 is 1,234.5, and where it is 1.234,5.
inline void for_each_locale(const std::function<void()>& body) {
  for (const char* name : {"en_US.UTF-8", "de_DE.UTF-8"}) {
    SCOPED_TRACE(name);
    const ScopedLocale locale(name);
    body();
  }
}

}  // namespace cohort::internal

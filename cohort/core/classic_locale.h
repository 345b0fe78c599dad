// Makes functions of the C library work on this thread as in the C locale, whatever locale the
// program has set: for fnmatch, and for libraries that read numbers by strtod.
//
//   const ClassicLocale classic;
//   ::fnmatch("?.csv", name, 0);   // one byte before the point, not one letter
#pragma once

#include <locale.h>

namespace cohort::internal {

class ClassicLocale {
 public:
  ClassicLocale() : before_(::uselocale(classic())) {}
  ~ClassicLocale() { ::uselocale(before_); }
  ClassicLocale(const ClassicLocale&) = delete;
  ClassicLocale& operator=(const ClassicLocale&) = delete;

 private:
  static locale_t classic() {
    static const locale_t locale = ::newlocale(LC_ALL_MASK, "C", nullptr);
    return locale;
  }

  const locale_t before_;
};

}  // namespace cohort::internal

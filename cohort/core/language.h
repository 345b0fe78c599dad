// What a program that includes Cohort must be compiled with.
#pragma once

#if __cplusplus < 202002L
#error "Cohort needs C++20: compile with -std=c++20, or link cohort::cohort by CMake"
#endif
#if defined(_GLIBCXX_DEBUG)
#error \
    "_GLIBCXX_DEBUG changes the layout of std::vector, and libcohort and libtorch were compiled \
without it: leave it out; _GLIBCXX_ASSERTIONS checks without changing a layout"
#endif

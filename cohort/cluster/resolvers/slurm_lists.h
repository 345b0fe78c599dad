// The lists in Slurm's environment variables.
//
//   expand_nodelist("n[08-10],m5,r[0-1]c[1,3]")   // n08 n09 n10 m5 r0c1 r0c3 r1c1 r1c3
//   expand_counts("2(x3),1")                      // 2 2 2 1
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cohort::internal {

// In order, not without duplicates; zeros before numbers stay.
// Errors: InvalidArgument (a list that is none, more than 65,536 hosts).
std::vector<std::string> expand_nodelist(std::string_view list);

// Errors: InvalidArgument (a list that is none, more than 65,536 counts).
std::vector<int> expand_counts(std::string_view list);

}  // namespace cohort::internal

// A table of customers, drawn from a seed.
//
//   age,income,visits,city,device,comment,bought
//   37.5,,4,city-2,phone,quick friendly order,1
//
// Ages and incomes are missing here and there. A few cities have most of the customers. Who bought
// depends on all columns, with noise.
#pragma once

#include <cstdint>
#include <string>

namespace tabular {

struct TableOptions {
  int64_t rows = 20'000;
  uint64_t seed = 1;
};

// Errors: those of a file that cannot be written.
void write_table(const std::string& path, const TableOptions& options);

}  // namespace tabular

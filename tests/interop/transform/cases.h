// The preprocessing functions of cases.py, in terms of cohort/transform, under their names there.
#pragma once

#include <cohort/transform/graph/column.h>

#include <map>
#include <string>
#include <vector>

namespace cohort::interop {

// What a case gives: outputs, and the names of the statistics that it keeps.
struct CaseOutputs {
  transform::Columns columns;
  std::vector<std::string> statistics = {};

  // cases.py's each_row.
  void keep(const std::string& name, const transform::Column& statistic);
};

using CaseFunction = CaseOutputs (*)(const transform::Columns& inputs);

const std::map<std::string, CaseFunction>& case_functions();

}  // namespace cohort::interop

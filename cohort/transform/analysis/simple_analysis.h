// Analyses whose accumulators take nothing but the analysis' options.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/transform/analysis/accumulator.h"

namespace cohort::internal {

struct AnalysisForm {
  std::string kind;
  Attributes attributes = {};
  size_t num_inputs = 1;
  std::vector<std::string> result_names;
  bool writes_file = false;
  bool uses_memory_limit = false;
};

// `Start` is called with the analysis' name and the context, and gives an accumulator.
template <class Start>
class SimpleAnalysis final : public Analysis {
 public:
  SimpleAnalysis(AnalysisForm form, Start start)
      : form_(std::move(form)), start_(std::move(start)) {}

  std::string kind() const override { return form_.kind; }
  Attributes attributes() const override { return form_.attributes; }
  size_t num_inputs() const override { return form_.num_inputs; }
  std::vector<std::string> result_names() const override { return form_.result_names; }
  bool writes_file() const override { return form_.writes_file; }
  bool uses_memory_limit() const override { return form_.uses_memory_limit; }
  std::unique_ptr<Accumulator> start(const AnalysisContext& context) const override {
    return start_(analysis_name(*this), context);
  }

 private:
  const AnalysisForm form_;
  const Start start_;
};

template <class Start>
std::shared_ptr<const Analysis> simple_analysis(AnalysisForm form, Start start) {
  return std::make_shared<SimpleAnalysis<Start>>(std::move(form), std::move(start));
}

}  // namespace cohort::internal

#include "models/example.h"

#include "models/bert.h"
#include "models/densenet.h"
#include "models/ncf.h"
#include "models/nmt.h"
#include "models/transformer.h"

namespace models {
namespace {

struct Named {
  const char* name;
  Example (*make)(double dropout);
};

constexpr Named kExamples[] = {
    {"densenet", [](double) { return densenet_example({}); }},
    {"bert", [](double dropout) { return bert_example({.dropout = dropout}); }},
    {"ncf", [](double) { return ncf_example({}); }},
    {"nmt", [](double dropout) { return nmt_example({.dropout = dropout}); }},
    {"transformer", [](double dropout) { return transformer_example({.dropout = dropout}); }},
};

}  // namespace

Example make_example(const std::string& name, double dropout) {
  for (const Named& one : kExamples) {
    if (one.name == name) return one.make(dropout);
  }
  throw cohort::InvalidArgumentError("no example is called '" + name + "'");
}

}  // namespace models

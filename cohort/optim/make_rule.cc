#include "cohort/optim/make_rule.h"

#include <algorithm>
#include <string_view>
#include <type_traits>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/optim/adadelta.h"
#include "cohort/optim/adafactor.h"
#include "cohort/optim/adagrad.h"
#include "cohort/optim/adam.h"
#include "cohort/optim/adamax.h"
#include "cohort/optim/ftrl.h"
#include "cohort/optim/lion.h"
#include "cohort/optim/nadam.h"
#include "cohort/optim/rmsprop.h"
#include "cohort/optim/rule_fields.h"
#include "cohort/optim/sgd.h"
#include "cohort/optim/transformed.h"

namespace cohort::optim {
namespace {

using internal::str;

using Rule = std::unique_ptr<const UpdateRule>;

template <class Options, Rule (*kMake)(const Options&)>
Rule make(const RuleConfig& config) {
  Options options;
  size_t taken = 0;
  internal::rule_fields(
      [&](std::string_view name, auto& field) {
        const auto given = std::find_if(config.values.begin(), config.values.end(),
                                        [&](const auto& value) { return value.first == name; });
        if (given == config.values.end()) {
          throw InvalidArgumentError(str("update rule ", config.name, " got no '", name, "'"));
        }
        field = static_cast<std::remove_reference_t<decltype(field)>>(given->second);
        ++taken;
      },
      options);
  if (taken != config.values.size()) {
    throw InvalidArgumentError(str("update rule ", config.name, " takes ", taken,
                                   " hyper-parameters, but got ", config.values.size()));
  }
  return kMake(options);
}

struct Maker {
  std::string_view name;
  Rule (*make)(const RuleConfig& config);
};
constexpr Maker kMakers[] = {
    {"Adadelta", make<AdadeltaOptions, make_adadelta>},
    {"Adafactor", make<AdafactorOptions, make_adafactor>},
    {"Adagrad", make<AdagradOptions, make_adagrad>},
    {"Adam", make<AdamOptions, make_adam>},
    {"Adamax", make<AdamaxOptions, make_adamax>},
    {"Ftrl", make<FtrlOptions, make_ftrl>},
    {"Lion", make<LionOptions, make_lion>},
    {"Nadam", make<NadamOptions, make_nadam>},
    {"RMSprop", make<RmspropOptions, make_rmsprop>},
    {"SGD", make<SgdOptions, make_sgd>},
};

}  // namespace

Rule make_rule(const RuleConfig& config) {
  const auto* maker = std::find_if(std::begin(kMakers), std::end(kMakers),
                                   [&](const Maker& known) { return known.name == config.name; });
  if (maker == std::end(kMakers)) {
    throw InvalidArgumentError(str("there is no update rule '", config.name, "'"));
  }
  Rule rule = maker->make(config);
  return config.transform ? make_transformed(std::move(rule), *config.transform) : std::move(rule);
}

}  // namespace cohort::optim

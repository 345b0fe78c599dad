#include "models/program.h"

#include <cohort/cohort.h>

#include <iomanip>
#include <iostream>
#include <sstream>
#include <vector>

#include "common/strategies.h"
#include "models/example.h"
#include "models/options.h"

namespace models {
namespace {

namespace tf = cohort;

// A line is one write, so that those of several tasks do not mix.
void print_series(const char* title, const std::vector<double>& values) {
  std::ostringstream line;
  line << title << std::setprecision(9);
  for (const double value : values) line << ' ' << value;
  line << '\n';
  std::cout << line.str() << std::flush;
}

tf::keras::Data data_of(const Rows& rows) { return {rows.inputs, rows.labels, rows.weights}; }

void train(const Example& example, const Options& options) {
  tf::config::keep_freed_memory();
  tf::random::set_seed(options.seed);
  tf::config::set_logical_device_configuration(
      "CPU", options.strategy == "one_device" ? 1 : options.replicas);
  const examples::MadeStrategy made = examples::make_strategy(options.strategy);
  const auto scope = made.strategy.scope();
  const tf::keras::ModelHandle model = example.make_model();
  model.compile({.optimizer = example.make_optimizer(),
                 .loss = example.loss,
                 .weighted_metrics = example.metric});

  const Rows train_rows = example.make_rows(example.train_rows, options.seed);
  const Rows test_rows = example.make_rows(example.test_rows, options.seed + 1);
  const tf::keras::History history =
      model.fit(data_of(train_rows), {.batch_size = options.global_batch,
                                      .epochs = options.epochs,
                                      .verbose = options.verbose,
                                      .validation_data = data_of(test_rows)});
  // All tasks of a cluster print the same.
  print_series("losses:", history["loss"]);
  print_series("test losses:", history["val_loss"]);
  print_series(("test " + example.metric + ":").c_str(), history["val_" + example.metric]);
  if (!options.out.empty()) model.save_weights(options.out + "/weights");
}

}  // namespace

int run_program(const std::string& name, int argc, char** argv) {
  const Options options = parse_options(argc, argv, make_example(name, 0));
  return tf::run_program([&] { train(make_example(name, options.dropout), options); });
}

}  // namespace models

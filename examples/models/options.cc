#include "models/options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "common/strategies.h"

namespace models {

Options parse_options(int argc, char** argv, const Example& example) {
  constexpr int kExitUsage = 64;
  Options options;
  options.epochs = example.epochs;
  options.global_batch = example.batch;
  CLI::App app{example.description + " Trains by Model::fit, under any strategy."};
  app.add_option("--strategy", options.strategy)
      ->check(CLI::IsMember(examples::strategy_names()))
      ->capture_default_str();
  app.add_option("--replicas", options.replicas, "Replicas of this process, each on a logical CPU")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--epochs", options.epochs)->check(CLI::Range(1, 1000000))->capture_default_str();
  app.add_option("--global-batch", options.global_batch, "Rows a step, over all replicas")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30))
      ->capture_default_str();
  app.add_option("--dropout", options.dropout, "Of the models that have it")
      ->check(CLI::Range(0.0, 0.9))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Of the data, the order and initial values")
      ->capture_default_str();
  app.add_option("--verbose", options.verbose, "0 nothing, 1 a bar, 2 a line an epoch")
      ->check(CLI::Range(-1, 2));
  app.add_option("--out", options.out, "A folder for the trained model's weights");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? EXIT_SUCCESS : kExitUsage);
  }
  return options;
}

}  // namespace models

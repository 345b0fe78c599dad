#include "options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "common/strategies.h"

namespace fit {

namespace {
constexpr int kExitUsage = 64;
}

Options parse_options(int argc, char** argv) {
  Options options;
  CLI::App app{"Trains guide 004's image classifier by Model::fit, under any strategy."};
  app.add_option("--strategy", options.strategy)
      ->check(CLI::IsMember(examples::strategy_names()))
      ->capture_default_str();
  app.add_option(
      "--data", options.data,
      "Folder with train-images-idx3-ubyte[.gz] and the other three files; without it the "
      "cache is used, a download, or images that the program draws itself");
  app.add_option("--dataset", options.dataset, "What to load without --data")
      ->check(CLI::IsMember({"fashion_mnist", "mnist"}))
      ->capture_default_str();
  app.add_option("--epochs", options.epochs)->check(CLI::Range(1, 1000000))->capture_default_str();
  app.add_option("--replicas", options.replicas, "Replicas of this process, each on a logical CPU")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--global-batch", options.global_batch, "Images a step, over all replicas")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Of initial values and shuffling")->capture_default_str();
  app.add_option("--verbose", options.verbose, "0 nothing, 1 a bar, 2 a line an epoch")
      ->check(CLI::Range(-1, 2));
  app.add_option("--backup", options.backup, "Folder from which a killed training goes on");
  app.add_option("--checkpoints", options.checkpoints, "Folder for a checkpoint an epoch");
  app.add_option("--logs", options.logs, "Folder for TensorBoard");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? EXIT_SUCCESS : kExitUsage);
  }
  return options;
}

}  // namespace fit

#include "options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

namespace custom_training {

namespace {
constexpr int kExitUsage = 64;
}

Options parse_options(int argc, char** argv) {
  Options options;
  std::string sections = "main";
  CLI::App app{"Trains guide 004's image classifier on N replicas of this machine."};
  app.add_option(
      "--data", options.data,
      "Folder with train-images-idx3-ubyte[.gz] and the other three files; without it the "
      "cache is used, a download, or images that the demo draws itself");
  app.add_option("--dataset", options.dataset, "What to load without --data")
      ->check(CLI::IsMember({"fashion_mnist", "mnist"}))
      ->capture_default_str();
  app.add_option("--replicas", options.replicas, "Replicas, each on a logical CPU")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--epochs", options.epochs)->check(CLI::Range(1, 1000000))->capture_default_str();
  app.add_option("--global-batch", options.global_batch, "Images a step, over all replicas")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Of initial values and shuffling")->capture_default_str();
  app.add_option("--checkpoint-dir", options.checkpoint_dir,
                 "Where checkpoints go, after every second epoch and the last")
      ->capture_default_str();
  app.add_flag("--profile", options.profile, "Print where the time of the training steps goes");
  app.add_option("--trace", options.trace,
                 "Write the first epoch's steps to this file, for chrome://tracing or Perfetto");
  app.add_option("--sections", sections, "'all' adds the guide's other forms of the loop")
      ->check(CLI::IsMember({"main", "all"}))
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? EXIT_SUCCESS : kExitUsage);
  }
  options.all_sections = sections == "all";
  return options;
}

}  // namespace custom_training

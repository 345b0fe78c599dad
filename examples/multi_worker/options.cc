#include "options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

namespace multi_worker {

Options parse_options(int argc, char** argv) {
  constexpr int kExitUsage = 64;
  Options options;
  CLI::App app{
      "Trains guide 004's image classifier in step on all workers of a cluster. Start it once for "
      "each: cohort launch --workers 2 -- multi_worker, or under torchrun, mpirun or srun."};
  app.add_option(
      "--data", options.data,
      "Folder with train-images-idx3-ubyte[.gz] and the other three files; without it the "
      "cache is used, a download, or images that the program draws itself");
  app.add_option("--replicas", options.replicas, "Replicas of each task, each on a logical CPU")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option(
         "--elastic", options.elastic,
         "Replicas in all, which the workers host: the digest is the same for any number of "
         "workers, and a checkpoint of so many goes on on others")
      ->check(CLI::Range(1, 1024));
  app.add_option("--epochs", options.epochs)->check(CLI::Range(1, 1000000))->capture_default_str();
  app.add_option("--global-batch", options.global_batch, "Images a step, over all workers")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Of initial values and shuffling")->capture_default_str();
  app.add_option(
      "--checkpoints", options.checkpoints,
      "A folder that all tasks reach: a checkpoint after each epoch, from which a later run "
      "goes on");
  app.add_flag(
      "--input", options.input,
      "Prints what each of two workers reads, by AutoShardPolicy, in place of the training");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? EXIT_SUCCESS : kExitUsage);
  }
  return options;
}

}  // namespace multi_worker

#include "options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

namespace parameter_server_fit {

Options parse_options(int argc, char** argv) {
  constexpr int kExitUsage = 64;
  Options options;
  CLI::App app{
      "Guide 001's Model::fit with parameter servers. Start it once for each task: cohort launch "
      "--chief --workers 3 --ps 2 -- parameter_server_fit; or in one process with --in-process."};
  app.add_flag("--in-process", options.in_process,
               "Servers for all tasks in this process, with real sockets between them");
  app.add_option("--workers", options.workers, "With --in-process")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--ps", options.ps, "With --in-process")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--epochs", options.epochs)
      ->check(CLI::Range(int64_t{1}, int64_t{1000000}))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Of initial values and examples")->capture_default_str();
  app.add_option("--working-dir", options.working_dir,
                 "A folder of the coordinator, for logs, checkpoints and the backup")
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? EXIT_SUCCESS : kExitUsage);
  }
  return options;
}

}  // namespace parameter_server_fit

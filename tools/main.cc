// The command `cohort`. Exit codes: 0 done, 64 a wrong call, 65 bad data, 1 all else, and what the
// commands say.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>

#include "cohort/core/error.h"
#include "cohort/core/program/elastic_workers.h"
#include "cohort/core/text.h"
#include "cohort/version.h"
#include "tools/checkpoint_commands.h"
#include "tools/cluster_commands.h"
#include "tools/launch_command.h"
#include "tools/printable.h"
#include "tools/tfrecord_commands.h"
#include "tools/transform_commands.h"
#include "tools/unknown_word.h"
#include "tools/vocabulary_commands.h"

namespace cohort::tools {
namespace {

using Command = std::function<int(internal::FileSystem& files, std::ostream& out)>;

// Validators: what is wrong with a number, or nothing.
std::string at_least_zero(const std::string& text) {
  const auto number = internal::parse_number<double>(text);
  return number && *number >= 0 ? "" : internal::quoted(text) + " is not at least 0";
}
// NaN passes CLI::Range.
std::string not_nan(const std::string& text) {
  const auto number = internal::parse_number<double>(text);
  return number && std::isnan(*number) ? internal::quoted(text) + " is not a number" : "";
}

int fail(std::string_view problem, int exit_code) {
  std::cerr << "cohort: " << printable(problem) << '\n';
  return exit_code;
}

// For commands that read no data: what is invalid, missing or not allowed there is in the call.
Command without_data(Command command) {
  return [command = std::move(command)](internal::FileSystem& files, std::ostream& out) {
    try {
      return command(files, out);
    } catch (const InvalidArgumentError& error) {
      return fail(error.what(), kExitUsage);
    } catch (const NotFoundError& error) {
      return fail(error.what(), kExitUsage);
    } catch (const PermissionDeniedError& error) {
      return fail(error.what(), kExitUsage);
    }
  };
}

// The command line, and what it asks for.
class CommandLine {
 public:
  CommandLine() {
    app_.set_version_flag("--version", std::string("cohort ") + kVersion);
    app_.require_subcommand(1);
    CLI::App& checkpoint = *app_.add_subcommand("checkpoint", "Looks at checkpoints");
    checkpoint.require_subcommand(1);
    add_ls(checkpoint);
    add_show(checkpoint);
    add_verify(checkpoint);
    add_diff(checkpoint);
    add_export(checkpoint);
    CLI::App& tfrecord = *app_.add_subcommand("tfrecord", "Looks at TFRecord files");
    tfrecord.require_subcommand(1);
    add_tfrecord_ls(tfrecord);
    add_tfrecord_verify(tfrecord);
    CLI::App& transform = *app_.add_subcommand("transform", "Looks at analysed transforms");
    transform.require_subcommand(1);
    add_transform_show(transform);
    add_transform_compare(transform);
    CLI::App& vocabulary =
        *app_.add_subcommand("vocabulary", "Builds and checks the indices of large vocabularies");
    vocabulary.require_subcommand(1);
    add_vocabulary_index(vocabulary);
    add_vocabulary_verify(vocabulary);
    add_launch(app_);
    CLI::App& cluster =
        *app_.add_subcommand("cluster", "Prepares clusters, and shows how they are");
    cluster.require_subcommand(1);
    add_certificates(cluster);
    add_status(cluster);
  }

  // Errors: CLI::ParseError.
  void parse(int argc, char** argv) { app_.parse(argc, argv); }
  // What is wrong with a call that ended in `error`, and where to look.
  std::string explain(const CLI::ParseError& error, int argc, char** argv) const {
    const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
    const std::string unknown = explain_unknown_word(app_, arguments);
    return internal::str(unknown.empty() ? error.what() : unknown, "; see `",
                         name_of_command(app_, arguments), " --help`");
  }
  int print_help(const CLI::ParseError& request) const {
    return app_.exit(request, std::cout, std::cerr);
  }
  const Command& command() const { return command_; }

 private:
  void add_ls(CLI::App& parent) {
    CLI::App& app = *parent.add_subcommand(
        "ls", "Lists the checkpoints of a directory, or the tensors of a checkpoint");
    app.add_option("PATH", ls_.path, "A checkpoint (DIR/ckpt-3) or a directory")->required();
    app.add_flag("--keys", ls_.raw_keys, "Keys as they stand in the file");
    app.add_flag("--json", ls_.json, "JSON");
    on(app, [this](auto& files, auto& out) { return list_checkpoints(files, ls_, out); });
  }

  void add_show(CLI::App& parent) {
    CLI::App& app =
        *parent.add_subcommand("show", "Shows the graph of objects, or the values of a tensor");
    app.add_option("PATH", show_.path, "A checkpoint (DIR/ckpt-3)")->required();
    app.add_option("KEY", show_.key, "A tensor, as `ls` or `ls --keys` writes its name");
    app.add_option("--max-elements", show_.max_elements, "The most values to print")
        ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 40))
        ->capture_default_str();
    on(app, [this](auto& files, auto& out) { return show_checkpoint(files, show_, out); });
  }

  void add_verify(CLI::App& parent) {
    CLI::App& app = *parent.add_subcommand("verify", "Reads everything and checks every checksum");
    app.add_option("PATH", verify_.path, "A checkpoint (DIR/ckpt-3), or a directory for all in it")
        ->required();
    on(app, [this](auto& files, auto& out) { return verify_checkpoints(files, verify_, out); });
  }

  void add_diff(CLI::App& parent) {
    CLI::App& app = *parent.add_subcommand("diff", "Compares the tensors of two checkpoints");
    app.add_option("A", diff_.a, "A checkpoint (DIR/ckpt-3)")->required();
    app.add_option("B", diff_.b, "Another")->required();
    app.add_option("--tolerance", diff_.tolerance, "Numbers no further apart than this are equal")
        ->check(at_least_zero)
        ->capture_default_str();
    on(app, [this](auto& files, auto& out) { return diff_checkpoints(files, diff_, out); });
  }

  void add_export(CLI::App& parent) {
    CLI::App& app = *parent.add_subcommand("export", "Writes tensors to a .safetensors file");
    app.add_option("PATH", export_.path, "A checkpoint (DIR/ckpt-3)")->required();
    app.add_option("--output", export_.output, "The file to write, or to replace")->required();
    app.add_option("--keys", export_.globs,
                   "Only tensors whose names match this glob; may be given several times")
        ->allow_extra_args(false);
    on(app, [this](auto& files, auto& out) { return export_checkpoint(files, export_, out); });
  }

  void add_tfrecord_ls(CLI::App& parent) {
    CLI::App& app =
        *parent.add_subcommand("ls", "Counts the records of files, and lists their features");
    add_tfrecord_options(app, tfrecord_ls_.paths, tfrecord_ls_.compression);
    app.add_flag("--features", tfrecord_ls_.features, "What the records hold, as tf.Examples");
    app.add_flag("--json", tfrecord_ls_.json, "JSON");
    on(app, [this](auto& files, auto& out) {
      return list_tfrecords(files, tfrecord_ls_, out, std::cerr);
    });
  }

  void add_tfrecord_verify(CLI::App& parent) {
    CLI::App& app = *parent.add_subcommand("verify", "Reads everything and checks every checksum");
    add_tfrecord_options(app, tfrecord_verify_.paths, tfrecord_verify_.compression);
    on(app,
       [this](auto& files, auto& out) { return verify_tfrecords(files, tfrecord_verify_, out); });
  }

  void add_transform_show(CLI::App& parent) {
    CLI::App& app =
        *parent.add_subcommand("show", "Shows columns, outputs, and what the analyses have found");
    app.add_option("DIR", transform_show_.directory, "What analyze_dataset has written")
        ->required();
    app.add_option("--max-values", transform_show_.max_values,
                   "The most quantiles, tokens or keys of one analysis to print")
        ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 40))
        ->capture_default_str();
    app.add_flag("--json", transform_show_.json, "JSON");
    on(app, [this](auto& files, auto& out) { return show_transform(files, transform_show_, out); });
  }

  void add_transform_compare(CLI::App& parent) {
    CLI::App& app = *parent.add_subcommand(
        "compare", "Finds drift between two runs; exits with 1 if there is some");
    app.add_option("A", transform_compare_.a, "What analyze_dataset has written")->required();
    app.add_option("B", transform_compare_.b, "What it has written later")->required();
    DriftLimits& limits = transform_compare_.limits;
    app.add_option("--threshold", limits.all, "How far any measure may move")
        ->check(at_least_zero)
        ->capture_default_str();
    for (size_t i = 0; i < kMeasureNames.size(); ++i) {
      const std::string name(kMeasureNames[i]);
      app.add_option("--" + name, limits.of_measure[i],
                     "How far `" + name + "` may move; default: --threshold")
          ->check(at_least_zero);
    }
    app.add_option("--first", transform_compare_.tokens,
                   "How many of a vocabulary's first tokens are compared")
        ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40))
        ->capture_default_str();
    app.add_flag("--json", transform_compare_.json, "JSON");
    on(app, [this](auto& files, auto& out) {
      try {
        return compare_transforms(files, transform_compare_, out);
      } catch (const Error& error) {
        const int code = exit_code(error);
        return fail(error.what(), code == kExitFailed ? kExitNotCompared : code);
      }
    });
  }

  void add_vocabulary_index(CLI::App& parent) {
    CLI::App& app = *parent.add_subcommand(
        "index",
        "Builds the index by which a vocabulary is mapped, where there is none of this text");
    add_vocabulary_options(app);
    app.add_option("--threads", vocabulary_.threads, "Default: as many as there are cores to use")
        ->check(CLI::Range(1, 1024));
    on(app, [this](auto&, auto& out) { return index_vocabularies(vocabulary_, out); });
  }

  void add_vocabulary_verify(CLI::App& parent) {
    CLI::App& app =
        *parent.add_subcommand("verify", "Reads texts and indices, and checks every checksum");
    add_vocabulary_options(app);
    on(app, [this](auto&, auto& out) { return verify_vocabularies(vocabulary_, out); });
  }

  void add_vocabulary_options(CLI::App& app) {
    app.add_option("FILE", vocabulary_.paths, "Texts, one token a line")->required();
    CLI::Option* column =
        app.add_option("--column", vocabulary_.column, "Lines have columns: the token's, from 0")
            ->check(CLI::Range(int64_t{0}, int64_t{1'000'000}));
    app.add_option("--delimiter", vocabulary_.delimiter,
                   "The character between columns; default: a tab")
        ->needs(column);
  }

  bool set_workers(const std::string& text) {
    if (const auto elastic = internal::parse_elastic_workers(text)) {
      launch_.job.min_workers = elastic->least;
      launch_.job.num_workers = elastic->most;
      return true;
    }
    const auto number = internal::parse_number<int32_t>(text);
    launch_.job.num_workers = number.value_or(0);
    return number.has_value();
  }

  void add_launch(CLI::App& parent) {
    CLI::App& app = *parent.add_subcommand(
        "launch", "Runs the tasks of a job as processes of this machine, each with its TF_CONFIG");
    app.add_option(
           "--workers", [this](const CLI::results_t& words) { return set_workers(words.at(0)); },
           "How many workers; MIN:MAX: an elastic job, which goes on while MIN of its MAX are left")
        ->type_name("N|MIN:MAX");
    app.add_option("--ps", launch_.job.num_ps,
                   "How many parameter servers; adds the chief that coordinates them");
    app.add_flag("--chief", launch_.job.chief, "A chief beside the workers");
    app.add_flag("--evaluator", launch_.job.evaluator, "An evaluator");
    app.add_option(
           "--restarts", launch_.restarts,
           "How often a task starts again that was killed or exited with 128 or more; without "
           "--ps all workers start again together, or with MIN:MAX each worker by itself")
        ->check(CLI::Range(0, 1'000'000))
        ->capture_default_str();
    app.add_flag("--restart-each", launch_.restart_each,
                 "Each worker starts again by itself, also without --ps");
    app.add_option("--cores-per-task", launch_.job.cores_per_task,
                   "Cores of each task; default: those there are, divided");
    app.add_option("--grace", launch_.grace_seconds,
                   "Seconds that tasks have to end before SIGTERM, and then before SIGKILL")
        ->check(CLI::Range(0.0, 1e6))
        ->check(not_nan)
        ->capture_default_str();
    CLI::Option* certificates =
        app.add_option("--certificates", launch_.certificates,
                       "Keeps the tasks' certificates in this folder; default: made for this run");
    app.add_flag("!--no-tls", launch_.tls, "Tasks talk without certificates, on loopback")
        ->excludes(certificates);
    app.add_flag("--dry-run", launch_.dry_run, "Prints what it would start");
    app.add_option("COMMAND", launch_.command, "-- PROGRAM ARGUMENT...")->required();
    on(app, without_data([this](auto&, auto& out) { return launch_job(launch_, out); }));
  }

  static void add_tfrecord_options(CLI::App& app, std::vector<std::string>& paths,
                                   std::string& compression) {
    app.add_option("FILE", paths, "TFRecord files")->required();
    app.add_option("--compression", compression, "Default: what the file's first bytes say")
        ->check(CLI::IsMember({"auto", "none", "gzip", "zlib"}))
        ->capture_default_str();
  }

  void add_certificates(CLI::App& parent) {
    CLI::App& app = *parent.add_subcommand(
        "certificates", "Makes a certificate for each task, by which tasks know each other");
    const auto count = CLI::Range(0, 100'000);
    app.add_option("--cluster", certificates_.cluster, "The cluster's name")->required();
    app.add_option("--out", certificates_.directory,
                   "The directory to write; one that has an authority already keeps it")
        ->required();
    app.add_option("--workers", certificates_.workers, "How many workers")->check(count);
    app.add_option("--ps", certificates_.ps, "How many parameter servers")->check(count);
    app.add_flag("--chief", certificates_.chief, "Also for a chief");
    app.add_flag("--evaluator", certificates_.evaluator, "Also for an evaluator");
    app.add_option("--days", certificates_.days, "How long they are valid")
        ->check(CLI::Range(1, 3660))
        ->capture_default_str();
    app.add_option("--hosts", certificates_.hosts,
                   "Names or addresses of hosts, for other programs that check them");
    on(app, without_data([this](auto&, auto& out) {
         return make_cluster_certificates(certificates_, out);
       }));
  }

  void add_status(CLI::App& parent) {
    CLI::App& app = *parent.add_subcommand(
        "status", "Shows the tasks of a running cluster; exits with 1 if one is lost or awaited");
    app.add_option("ADDRESS", status_.address, "host:port of any task")->required();
    app.add_option("--certificates", status_.certificates,
                   "The directory that `cohort cluster certificates` made; default: the "
                   "credentials of the environment");
    app.add_option("--timeout", status_.timeout_seconds, "Seconds to wait for an answer")
        ->check(CLI::Range(0.01, 3600.0))
        ->check(not_nan)
        ->capture_default_str();
    CLI::Option* watch =
        app.add_flag("--watch", status_.watch, "Shows it again each second, until Ctrl-C");
    app.add_option("--times", status_.times, "With --watch: how often")
        ->needs(watch)
        ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
    app.add_flag("--json", status_.json, "JSON; with --watch, one line each");
    on(app, [this](auto&, auto& out) {
      status_.terminal = ::isatty(STDOUT_FILENO) == 1;
      return show_cluster_status(status_, out, std::cerr);
    });
  }

  void on(CLI::App& app, Command command) {
    app.callback([this, command = std::move(command)] { command_ = command; });
  }

  CLI::App app_{"Cohort's tools.", "cohort"};
  Command command_;
  LsOptions ls_;
  ShowOptions show_;
  VerifyOptions verify_;
  DiffOptions diff_;
  ExportOptions export_;
  TFRecordLsOptions tfrecord_ls_;
  TFRecordVerifyOptions tfrecord_verify_;
  TransformShowOptions transform_show_;
  TransformCompareOptions transform_compare_;
  VocabularyCommandOptions vocabulary_;
  LaunchCommandOptions launch_;
  CertificatesOptions certificates_;
  StatusOptions status_;
};

// `result`, if what the command wrote has arrived.
int after_output(int result) {
  std::cout.flush();
  return std::cout ? result : fail("the output could not be written", kExitFailed);
}

int main(int argc, char** argv) {
  CommandLine line;
  try {
    line.parse(argc, argv);
    return after_output(line.command()(internal::posix_file_system(), std::cout));
  } catch (const CLI::Success& help_or_version) {
    return after_output(line.print_help(help_or_version));
  } catch (const CLI::ParseError& error) {
    return fail(line.explain(error, argc, argv), kExitUsage);
  } catch (const Error& error) {
    return fail(error.what(), exit_code(error));
  } catch (const std::exception& error) {
    return fail(error.what(), kExitFailed);
  }
}

}  // namespace
}  // namespace cohort::tools

int main(int argc, char** argv) {
  // gRPC writes lines of its own about connections; the command's one line says what is wrong.
  ::setenv("GRPC_VERBOSITY", "NONE", 0);
  return cohort::tools::main(argc, argv);
}

// The program itself, on files of this machine.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cohort/cluster/launch/child_process.h"
#include "cohort/cluster/rpc/listening_socket.h"
#include "cohort/cluster/security/make_certificates.h"
#include "cohort/cluster/server.h"
#include "cohort/core/host/unique_fd.h"
#include "cohort/data/records/tfrecord_writer.h"
#include "cohort/version.h"
#include "tools/checkpoint_commands.h"
#include "tools/exit_codes.h"
#include "tools/testing_checkpoints.h"
#include "tools/testing_transforms.h"

namespace cohort::tools {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::StartsWith;

struct Ended {
  std::string output;  // stdout and stderr
  int exit_code = -1;
};

using Arguments = std::vector<std::string>;

constexpr const char* kClosed = "closed";

struct Command : testing::Test {
  Command() {
    std::string pattern = testing::TempDir() + "cohort_command_test.XXXXXX";
    root = ::mkdtemp(pattern.data());
    directory = root + "/dir";
    std::filesystem::create_directory(directory);
    write_checkpoint(internal::posix_file_system(), directory + "/ckpt-1");
  }
  ~Command() override { std::filesystem::remove_all(root); }

  // In the directory. `stdout_path`: empty: that of stderr; kClosed: the program has none.
  // `variables`: "NAME=value", beside this program's.
  Ended run(const Arguments& arguments, const std::string& stdout_path = "",
            const Arguments& variables = {}) const {
    const std::string log = root + "/log";
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addchdir_np(&actions, directory.c_str());
    const int flags = O_WRONLY | O_CREAT | O_TRUNC;
    ::posix_spawn_file_actions_addopen(&actions, 2, log.c_str(), flags, 0600);
    if (stdout_path.empty()) {
      ::posix_spawn_file_actions_adddup2(&actions, 2, 1);
    } else if (stdout_path == kClosed) {
      ::posix_spawn_file_actions_addclose(&actions, 1);
    } else {
      ::posix_spawn_file_actions_addopen(&actions, 1, stdout_path.c_str(), O_WRONLY, 0);
    }
    std::vector<char*> argv = {const_cast<char*>("cohort")};
    for (const std::string& argument : arguments) {
      argv.push_back(const_cast<char*>(argument.c_str()));
    }
    argv.push_back(nullptr);
    std::vector<std::string> environment = internal::own_environment();
    for (const std::string& variable : variables) {
      const size_t equals = variable.find('=');
      internal::set_variable(environment, variable.substr(0, equals), variable.substr(equals + 1));
    }
    std::vector<char*> envp;
    for (std::string& variable : environment) envp.push_back(variable.data());
    envp.push_back(nullptr);
    pid_t pid = -1;
    const int error =
        ::posix_spawn(&pid, COHORT_COMMAND, &actions, nullptr, argv.data(), envp.data());
    ::posix_spawn_file_actions_destroy(&actions);
    EXPECT_EQ(error, 0) << COHORT_COMMAND;
    int status = -1;
    if (error != 0 || ::waitpid(pid, &status, 0) != pid) return {};
    std::ifstream in(log, std::ios::binary);
    return {.output = {std::istreambuf_iterator<char>(in), {}},
            .exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1};
  }

  void expect_refused(const Arguments& arguments, int exit_code, const std::string& text) const {
    const Ended ended = run(arguments);
    const std::string call = testing::PrintToString(arguments);
    EXPECT_EQ(ended.exit_code, exit_code) << call;
    EXPECT_THAT(ended.output, StartsWith("cohort: ")) << call;
    EXPECT_THAT(ended.output, HasSubstr(text)) << call;
    EXPECT_EQ(ended.output.find('\n'), ended.output.size() - 1) << "not one line: " << ended.output;
  }

  std::string root;
  std::string directory;  // in it
};

TEST_F(Command, VersionAndHelp) {
  EXPECT_EQ(run({"--version"}).output, std::string("cohort ") + kVersion + "\n");
  const Ended help = run({"checkpoint", "diff", "--help"});
  EXPECT_EQ(help.exit_code, kExitOk);
  EXPECT_THAT(help.output, HasSubstr("--tolerance"));
}

TEST_F(Command, Works) {
  const Ended listed = run({"checkpoint", "ls", "."});
  EXPECT_EQ(listed.exit_code, kExitOk);
  EXPECT_THAT(listed.output, ContainsRegex("ckpt-1 +5 tensors +[0-9]+ bytes +2[0-9]+-[0-9-]+T.*Z"));
  EXPECT_THAT(run({"checkpoint", "ls", "ckpt-1", "--json"}).output, StartsWith("{"));
  EXPECT_THAT(run({"checkpoint", "show", "ckpt-1", "step"}).output, HasSubstr("\n7\n"));
  EXPECT_THAT(run({"checkpoint", "show", "ckpt-1", "model/kernel", "--max-elements", "1"}).output,
              HasSubstr("[[0., ...]"));
  EXPECT_EQ(run({"checkpoint", "verify", "."}).exit_code, kExitOk);
  EXPECT_EQ(run({"checkpoint", "diff", "ckpt-1", "ckpt-1", "--tolerance", "0.5"}).exit_code,
            kExitOk);
  EXPECT_THAT(run({"checkpoint", "export", "--keys", "model/*", "--keys", "step", "ckpt-1",
                   "--output", "m.safetensors"})
                  .output,
              HasSubstr("wrote 'm.safetensors': 3 tensors, 56 bytes\n"));
  EXPECT_TRUE(std::filesystem::exists(directory + "/m.safetensors"));
}

TEST_F(Command, TFRecordFiles) {
  {
    io::TFRecordWriter writer(directory + "/a.tfrecord");
    writer.write("one");
    writer.close();
  }
  EXPECT_EQ(run({"tfrecord", "ls", "a.tfrecord"}).output, "a.tfrecord  1 record  3 bytes\n");
  EXPECT_THAT(run({"tfrecord", "ls", "--json", "--features", "a.tfrecord"}).output,
              StartsWith("{"));
  EXPECT_EQ(run({"tfrecord", "verify", "a.tfrecord"}).output,
            "OK 'a.tfrecord': 1 record, 3 bytes\n");
  EXPECT_EQ(run({"tfrecord", "verify", "ckpt-1.index"}).exit_code, kExitBadData);
  expect_refused({"tfrecord", "verify", "none"}, kExitFailed, "'none'");
  expect_refused({"tfrecord", "verify", "."}, kExitBadData, "a directory");
  expect_refused({"tfrecord", "ls"}, kExitUsage, "FILE");
  expect_refused({"tfrecord", "ls", "a.tfrecord", "--compression", "lz4"}, kExitUsage,
                 "--compression");
}

TEST_F(Command, Transforms) {
  auto& files = internal::posix_file_system();
  write_transform(files, directory + "/a");
  write_transform(files, directory + "/b", {.mean = 45});
  EXPECT_THAT(run({"transform", "show", "a"}).output, StartsWith("a: 8 rows analysed"));
  EXPECT_THAT(run({"transform", "show", "a", "--json", "--max-values", "1"}).output,
              StartsWith("{"));
  EXPECT_EQ(run({"transform", "compare", "a", "a"}).exit_code, kExitOk);
  EXPECT_EQ(run({"transform", "compare", "a", "b"}).exit_code, kExitDifferent);
  EXPECT_EQ(run({"transform", "compare", "a", "b", "--threshold", "0.6"}).exit_code, kExitOk);
  EXPECT_EQ(
      run({"transform", "compare", "a", "b", "--mean", "0.6", "--first", "9", "--json"}).exit_code,
      kExitOk);
  expect_refused({"transform", "show", "."}, kExitFailed, "'.' holds no transform");
  // 1 would say that there is drift.
  expect_refused({"transform", "compare", "a", "none"}, kExitNotCompared, "holds no transform");
  files.remove(vocabulary_path(directory + "/b"));
  expect_refused({"transform", "compare", "a", "b"}, kExitBadData, "is missing");
  expect_refused({"transform", "compare", "a"}, kExitUsage, "B");
  expect_refused({"transform", "compare", "a", "a", "--threshold", "nan"}, kExitUsage,
                 "--threshold");
  expect_refused({"transform", "compare", "a", "a", "--treshold", "1"}, kExitUsage,
                 "did you mean '--threshold'?");
  expect_refused({"transform", "shwo", "a"}, kExitUsage, "did you mean 'show'?");
  expect_refused({"transform", "show", "a", "--max-value", "1"}, kExitUsage,
                 "did you mean '--max-values'?");
}

TEST_F(Command, WrongCalls) {
  expect_refused({}, kExitUsage, "subcommand");
  expect_refused({"launch", "--workers", "1", "--", "./no_such_program"}, kExitUsage,
                 "no_such_program");
  expect_refused({"checkpoint"}, kExitUsage, "subcommand");
  expect_refused({"checkpoint", "frob"}, kExitUsage, "");
  expect_refused({"checkpoint", "ls"}, kExitUsage, "PATH");
  expect_refused({"checkpoint", "ls", ".", "--frob"}, kExitUsage, "--frob");
  expect_refused({"checkpoint", "ls", ".", "\x1b[31m"}, kExitUsage, "\\x1b[31m");
  expect_refused({"checkpoint", "show", "ckpt-1", "--max-elements", "-1"}, kExitUsage,
                 "--max-elements");
  expect_refused({"checkpoint", "diff", "ckpt-1", "ckpt-1", "--tolerance", "nan"}, kExitUsage,
                 "--tolerance");
  expect_refused({"checkpoint", "diff", "ckpt-1", "ckpt-1", "--tolerance", "x"}, kExitUsage,
                 "--tolerance");
  expect_refused({"checkpoint", "export", "ckpt-1"}, kExitUsage, "--output");
  for (const char* seconds : {"nan", "-nan", "inf", "-1", "soon"}) {
    expect_refused({"launch", "--grace", seconds, "--", "true"}, kExitUsage, "--grace");
    expect_refused({"cluster", "status", "127.0.0.1:1", "--timeout", seconds}, kExitUsage,
                   "--timeout");
  }
}

TEST_F(Command, AWordThatIsNotKnownIsNamedWithWhatItMayMean) {
  expect_refused({"launch", "--worker", "2", "--", "true"}, kExitUsage,
                 "`cohort launch` has no option '--worker'; did you mean '--workers'?");
  expect_refused({"launch", "--workers", "2", "--restart=1", "--", "true"}, kExitUsage,
                 "'--restart'; did you mean '--restarts'?");
  expect_refused({"launch", "--no-tsl", "--workers", "1", "--", "true"}, kExitUsage,
                 "'--no-tsl'; did you mean '--no-tls'?");
  expect_refused({"launch", "-n", "2", "--", "true"}, kExitUsage,
                 "`cohort launch` has no option '-n'; there are --help, --workers, --ps, ");
  expect_refused({"launch", "--workers", "1", "echo", "--data", "x"}, kExitUsage,
                 "has no option '--data'; write -- before the program whose option it is; see "
                 "`cohort launch --help`");
  expect_refused({"lunch"}, kExitUsage, "`cohort` has no command 'lunch'; did you mean 'launch'?");
  expect_refused({"--verison"}, kExitUsage, "'--verison'; did you mean '--version'?");
  expect_refused({"checkpoint", "lst", "."}, kExitUsage,
                 "`cohort checkpoint` has no command 'lst'; did you mean 'ls'?");
  expect_refused(
      {"checkpoint", "frob"}, kExitUsage,
      "'frob'; there are ls, show, verify, diff, export; see `cohort checkpoint --help`");
  expect_refused({"checkpoint", "ls", ".", "--jsn"}, kExitUsage, "did you mean '--json'?");
  expect_refused({"checkpoint", "show", "ckpt-1", "--max-element", "3"}, kExitUsage,
                 "did you mean '--max-elements'?");
  expect_refused({"tfrecord", "ls", "--feature", "x"}, kExitUsage, "did you mean '--features'?");
  expect_refused({"cluster", "statis"}, kExitUsage, "did you mean 'status'?");
  expect_refused({"cluster", "certificates", "--clustr", "a", "--out", "b"}, kExitUsage,
                 "did you mean '--cluster'?");
}

// What is known is not called unknown: values that look like options, and words after `--`.
TEST_F(Command, WrongCallsOfKnownWordsSayWhatIsWrong) {
  expect_refused({"launch", "--workers", "2", "--ps"}, kExitUsage, "--ps: 1 required");
  expect_refused({"launch", "--workers", "2"}, kExitUsage,
                 "COMMAND is required; see `cohort launch");
  expect_refused({"launch", "--ps", "0", "--", "true", "--worker"}, kExitUsage,
                 "the job has no task; say how many: --workers 2");
  expect_refused({"launch", "--workers", "x", "--", "true"}, kExitUsage, "--workers = x");
  expect_refused({"launch", "--workers", "4:2", "--", "true"}, kExitUsage, "--workers = 4:2");
  expect_refused({"launch", "--workers", "2:4", "--ps", "1", "--", "true"}, kExitUsage,
                 "--workers 2:4 is for a job of workers that train in step; leave away --ps");
  expect_refused({"launch", "--workers", "1", "--", ""}, kExitUsage, "the program's name is empty");
  expect_refused({"launch", "--workers", "1", "--", "/dev/null"}, kExitUsage,
                 "'/dev/null' is no file that can be executed");
}

TEST_F(Command, WrongClustersAreWrongCalls) {
  expect_refused({"cluster", "certificates", "--cluster", "a b", "--out", "c", "--workers", "1"},
                 kExitUsage, "a cluster cannot be called 'a b'");
  expect_refused({"cluster", "certificates", "--cluster", "a", "--out", "c"}, kExitUsage,
                 "how many workers");
  expect_refused({"launch", "--workers", "-1", "--", "true"}, kExitUsage, "-1");
  EXPECT_FALSE(std::filesystem::exists(directory + "/c"));
}

// A task that starts again reads them, too, and no folder for temporary files is needed.
TEST_F(Command, CertificatesOfOneRunAreOnNoDisk) {
  const Ended ended = run({"launch", "--workers", "1", "--restarts", "1", "--", "sh", "-c",
                           "head -n 1 $COHORT_CERTIFICATE_FILE $COHORT_KEY_FILE $COHORT_CA_FILE\n"
                           "stat -L -c %a $COHORT_KEY_FILE\n"
                           "[ -e again ] && exit 3; touch again; kill -9 $$"},
                          "", {"TMPDIR=" + root + "/none"});
  EXPECT_EQ(ended.exit_code, 3) << ended.output;
  size_t keys = 0;
  for (size_t at = 0;
       (at = ended.output.find("-----BEGIN PRIVATE KEY-----", at)) != std::string::npos; ++at) {
    ++keys;
  }
  EXPECT_EQ(keys, 2u) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("[worker:0] 600\n"));
  EXPECT_EQ(ended.output.find("cannot open"), std::string::npos) << ended.output;
}

TEST_F(Command, AKilledLauncherLeavesNoKeysBehind) {
  const std::string temporary = root + "/temporary";
  std::filesystem::create_directory(temporary);
  const Ended ended = run({"launch", "--workers", "1", "--", "sh", "-c",
                           "cat $COHORT_KEY_FILE > /dev/null && echo $COHORT_KEY_FILE > '" + root +
                               "/where'; kill -9 $PPID; exec sleep 60"},
                          "", {"TMPDIR=" + temporary});
  EXPECT_EQ(ended.exit_code, -1) << "not killed: " << ended.output;
  EXPECT_TRUE(std::filesystem::is_empty(temporary));
  std::string where;
  std::getline(std::ifstream(root + "/where"), where);
  EXPECT_THAT(where, StartsWith("/proc/"));
  EXPECT_FALSE(std::ifstream(where).is_open());
}

TEST_F(Command, WhatIsNotThere) {
  expect_refused({"checkpoint", "ls", "none"}, kExitFailed, "'none'");
  expect_refused({"checkpoint", "show", "ckpt-1", "none"}, kExitFailed, "'none'");
  std::filesystem::create_directory(directory + "/empty");
  expect_refused({"checkpoint", "verify", "empty"}, kExitFailed, "no checkpoints in 'empty'");
}

TEST_F(Command, DamageAndDifferencesAreExitCodes) {
  write_checkpoint(internal::posix_file_system(), directory + "/ckpt-2", {.step = {8}});
  EXPECT_EQ(run({"checkpoint", "diff", "ckpt-1", "ckpt-2"}).exit_code, kExitDifferent);
  {
    std::fstream data(directory + "/ckpt-2.data-00000-of-00001",
                      std::ios::in | std::ios::out | std::ios::binary);
    data.put('x');
  }
  const Ended verified = run({"checkpoint", "verify", "."});
  EXPECT_EQ(verified.exit_code, kExitBadData);
  EXPECT_THAT(verified.output, ContainsRegex("OK './ckpt-1'.*\nDAMAGED './ckpt-2'"));
  expect_refused({"checkpoint", "show", "ckpt-2", "model/kernel"}, kExitBadData,
                 "ckpt-2.data-00000-of-00001");
}

TEST_F(Command, OutputThatCannotBeWritten) {
  const Ended ended = run({"checkpoint", "ls", "ckpt-1"}, "/dev/full");
  EXPECT_EQ(ended.exit_code, kExitFailed);
  EXPECT_THAT(ended.output, HasSubstr("could not be written"));
}

// `cohort ... >&-`: the lines go neither into the first file that is opened nor away unsaid.
TEST_F(Command, OutputWhichIsClosed) {
  for (const Arguments& arguments :
       {Arguments{"checkpoint", "ls", "ckpt-1"}, Arguments{"checkpoint", "verify", "ckpt-1"},
        Arguments{"checkpoint", "export", "ckpt-1", "--output", "w.safetensors"},
        Arguments{"--help"}, Arguments{"launch", "--dry-run", "--workers", "1", "--", "true"}}) {
    const Ended ended = run(arguments, kClosed);
    EXPECT_EQ(ended.exit_code, kExitFailed) << arguments[0];
    EXPECT_EQ(ended.output, "cohort: the output could not be written\n") << arguments[0];
  }
  std::ifstream file(directory + "/w.safetensors", std::ios::binary);
  const std::string exported{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(exported, HasSubstr("model/kernel"));
  EXPECT_EQ(exported.find("wrote"), std::string::npos);
  // The job is what launch is asked for: it has been done.
  const Ended job = run({"launch", "--workers", "1", "--", "sh", "-c", "echo said"}, kClosed);
  EXPECT_EQ(job.exit_code, 0);
  EXPECT_THAT(job.output, HasSubstr("output of the tasks cannot be written"));
  EXPECT_EQ(job.output.find("said"), std::string::npos) << job.output;
}

TEST_F(Command, ClusterStatusOfARunningCluster) {
  const std::string certificates = directory + "/certs";
  const TaskId task{"worker", 0};
  internal::security::make_certificates(
      {.cluster = "a", .tasks = {task}, .directory = certificates});
  internal::UniqueFd socket = internal::rpc::listen_at("127.0.0.1", 0);
  const std::string address =
      "127.0.0.1:" + std::to_string(internal::rpc::listening_address(socket.get()).port);
  const distribute::Server server(
      train::ClusterSpec({{"worker", {address}}}),
      {.job_name = "worker",
       .credentials = internal::security::credentials_in(certificates, task),
       .listen_fd = socket.release()});
  server.coordination().wait_for_start();
  const Ended ended =
      run({"cluster", "status", address, "--json", "--timeout", "20", "--certificates", "certs"});
  EXPECT_EQ(ended.exit_code, kExitOk);
  // Nothing else is written, by gRPC, say.
  EXPECT_EQ(nlohmann::json::parse(ended.output).at("well"), true);
  expect_refused({"cluster", "status", address, "--timeout", "20"}, kExitUnreachable,
                 "cannot reach " + address);
}

TEST_F(Command, ClusterStatusRefusesWrongCalls) {
  expect_refused({"cluster", "status"}, kExitUsage, "ADDRESS");
  expect_refused({"cluster", "status", "here"}, kExitUsage, "'here'");
  expect_refused({"cluster", "status", "127.0.0.1:1", "--times", "2"}, kExitUsage, "--watch");
  expect_refused({"cluster", "status", "127.0.0.1:1", "--timeout", "0"}, kExitUsage, "--timeout");
  expect_refused({"cluster", "status", "127.0.0.1:1", "--certificates", "none"}, kExitUsage,
                 "cannot read");
}

}  // namespace
}  // namespace cohort::tools

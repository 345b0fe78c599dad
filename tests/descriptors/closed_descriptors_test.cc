// A program that is started without some of the descriptors 0 to 2 (`program >&-`), or closes them,
// as daemons do, trains as any other: what it prints is lost, and goes into no file.
#include <cohort/cohort.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "cohort/core/testing_folder.h"

namespace tf = cohort;

namespace {

using cohort::internal::TemporaryFolder;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kTrain = "--train";
constexpr const char* kOwnLine = "a line of the program's own";
constexpr int kRecords = 50;

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void say() {
  std::cout << kOwnLine << std::endl;
  std::cerr << kOwnLine << std::endl;
}

// Opens files of every kind and prints all the while.
void train(const std::string& folder) {
  tf::io::TFRecordWriter records(folder + "/a.tfrecord");
  auto summaries = tf::summary::create_file_writer(folder + "/summaries");
  say();
  const tf::Tensor x = tf::random::normal({16, 2});
  const tf::keras::Sequential model({tf::keras::layers::Dense(1, {.name = "out"})});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  using namespace tf::keras::callbacks;
  model.fit(x, x.sum({1}, true),
            {.batch_size = 4,
             .epochs = 2,
             .verbose = 2,
             .callbacks = {CSVLogger(folder + "/log.csv"), TensorBoard(folder + "/board"),
                           BackupAndRestore(folder + "/backup", {.delete_checkpoint = false}),
                           ModelCheckpoint(folder + "/model-{epoch}")}});
  for (int i = 0; i < kRecords; ++i) {
    say();
    records.write("record " + std::to_string(i));
  }
  {
    const auto scope = summaries.as_default(0);
    tf::summary::scalar("loss", 1.0);
  }
  records.close();
  summaries.close();
}

// `train FOLDER early|late DESCRIPTORS`, the digits of those that are closed.
int task(const std::vector<std::string>& arguments) {
  const bool late = arguments[1] == "late";
  for (const char digit : arguments[2]) {
    const int fd = digit - '0';
    if (late) {
      ::close(fd);
      continue;
    }
    std::error_code error;
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    if (std::filesystem::read_symlink(link, error) != "/dev/null") {
      // A constructor of libtorch's dependencies was before Cohort's, with an eventfd.
      if (error) return 3;
      continue;
    }
    // A write, and a read of 0, fails as that of a closed one does.
    char byte = 'x';
    const ssize_t count = fd == STDIN_FILENO ? ::read(fd, &byte, 1) : ::write(fd, &byte, 1);
    if (count != -1 || errno != EBADF) return 4;
  }
  return tf::run_program([&] { train(arguments[0]); });
}

struct Ended {
  int exit_code = -1;
  std::string out, err;  // of those that were open
};

Ended run(const TemporaryFolder& folder, const std::string& when, const std::string& closed) {
  const std::string data = folder / "data";
  std::filesystem::create_directory(data);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  const std::string out = folder / "out", err = folder / "err";
  const int flags = O_WRONLY | O_CREAT | O_TRUNC;
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/zero", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), flags, 0600);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(), flags, 0600);
  if (when == "early") {
    for (const char digit : closed) ::posix_spawn_file_actions_addclose(&actions, digit - '0');
  }
  std::vector<std::string> words = {"program", kTrain, data, when, closed};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  EXPECT_EQ(::posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, argv.data(), environ), 0);
  ::posix_spawn_file_actions_destroy(&actions);
  int status = -1;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          .out = bytes_of(out),
          .err = bytes_of(err)};
}

void expect_whole_files(const std::filesystem::path& data) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(data)) {
    if (!entry.is_regular_file()) continue;
    ++count;
    const std::string bytes = bytes_of(entry.path());
    for (const char* printed : {"Epoch 1/2", "ms/step", kOwnLine}) {
      EXPECT_EQ(bytes.find(printed), std::string::npos) << entry.path() << " has " << printed;
    }
  }
  EXPECT_GT(count, 8U);
  int64_t next = 0;
  for (const tf::Structure& record : tf::data::TFRecordDataset((data / "a.tfrecord").string())) {
    EXPECT_EQ(record.strings().item(), "record " + std::to_string(next++));
  }
  EXPECT_EQ(next, kRecords);
  const std::string log = bytes_of(data / "log.csv");
  EXPECT_THAT(log, testing::StartsWith("epoch,loss\n0,"));
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 3) << log;
  EXPECT_NO_THROW(tf::keras::models::load_model((data / "model-2").string()));
}

void expect_as_if_open(const std::string& when, const std::string& closed) {
  SCOPED_TRACE(when + ": " + closed);
  const TemporaryFolder folder;
  const Ended ended = run(folder, when, closed);
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  const bool out = closed.find('1') == std::string::npos;
  const bool err = closed.find('2') == std::string::npos;
  EXPECT_THAT(ended.out, out ? testing::Matcher<std::string>(HasSubstr("Epoch 2/2")) : "");
  EXPECT_THAT(ended.err, err ? testing::Matcher<std::string>(HasSubstr(kOwnLine)) : "");
  expect_whole_files(folder.path() / "data");
}

TEST(ClosedDescriptorsTest, ATrainingThatIsStartedWithoutThem) {
  for (const char* closed : {"", "0", "1", "2", "01", "02", "12", "012"}) {
    expect_as_if_open("early", closed);
  }
}

TEST(ClosedDescriptorsTest, ATrainingThatClosesThem) {
  for (const char* closed : {"1", "12", "012"}) expect_as_if_open("late", closed);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 5 && std::string(argv[1]) == kTrain) return task({argv + 2, argv + argc});
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

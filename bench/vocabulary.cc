// A large vocabulary, mapped and read: how long until the first lookup, how many lookups a second,
// and how much memory one process and four take.
//
//   bench_vocabulary [TOKENS [DIRECTORY]]   default: 10,000,000, in the folder for temporary files
//
// Makes a text of tokens of 2 to 10 characters. "mapped" is the index of lookup layers and tables,
// "read" their hash table over a text in memory. A tenth of the words looked up is in no line. Each
// figure is of a process of its own, in which nothing but the text was in memory before. Times are of
// the clock, and in brackets of the processor; those of lookups are of the processor.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/observe/logging.h"
#include "cohort/core/text.h"
#include "cohort/ops/lookup/key_index.h"
#include "cohort/ops/vocabulary/mapped_vocabulary.h"
#include "timing.h"

namespace {

using Clock = std::chrono::steady_clock;
using cohort::internal::KeyIndex;
using cohort::internal::MappedVocabulary;
struct Look;
// Takes what a process has found out, and returns when the process may end.
using Report = std::function<void(const Look&)>;
using FindAll = std::function<void(const std::string_view*, int64_t, int64_t*)>;

std::string word(int64_t i) {
  char text[24];
  const auto mixed = static_cast<uint64_t>(i) * 2654435761u % (uint64_t{1} << 36);
  std::snprintf(text, sizeof text, "%c%llx", static_cast<char>('a' + i % 10),
                static_cast<unsigned long long>(mixed));
  return text;
}

void write_text(const std::string& path, int64_t tokens) {
  std::ofstream out(path, std::ios::binary);
  std::string block;
  for (int64_t i = 0; i < tokens; ++i) {
    block += word(i) + "\n";
    if (block.size() < (1 << 20) && i + 1 < tokens) continue;
    out << block;
    block.clear();
  }
  if (!out.flush()) throw std::runtime_error("cannot write " + path);
}

// What this process has used of all processors.
double cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// A number of KiB of one of the process's files in /proc, in MiB.
double mebibytes(const std::string& process, const char* file, const std::string& field) {
  std::ifstream in("/proc/" + process + "/" + file);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(field + ":", 0) == 0) return std::atof(line.c_str() + field.size() + 1) / 1024;
  }
  throw std::runtime_error("no " + field + " of process " + process);
}

struct Look {
  double open_seconds = 0, open_cpu_seconds = 0;
  double peak_mebibytes = 0;  // until it was open
  double first_nanoseconds = 0, lookup_nanoseconds = 0;
};

// Words at random, a tenth of them in no line.
Look look_up(const FindAll& find_all, int64_t tokens, Look look) {
  constexpr int64_t kWords = 2'000'000;
  std::mt19937_64 random(static_cast<uint64_t>(::getpid()));
  std::vector<std::string> words;
  for (int64_t i = 0; i < kWords; ++i) {
    words.push_back(word(static_cast<int64_t>(random() % static_cast<uint64_t>(tokens))));
    if (i % 10 == 0) words.back() += '?';
  }
  const std::vector<std::string_view> views(words.begin(), words.end());
  std::vector<int64_t> numbers(words.size());
  const auto nanoseconds = [&] {
    const double start = cpu_seconds();
    find_all(views.data(), kWords, numbers.data());
    return (cpu_seconds() - start) * 1e9 / kWords;
  };
  look.first_nanoseconds = nanoseconds();
  look.lookup_nanoseconds = nanoseconds();
  for (int i = 0; i < 4; ++i)
    look.lookup_nanoseconds = std::min(look.lookup_nanoseconds, nanoseconds());
  for (int64_t i = 0; i < kWords; ++i) {
    const int64_t number = numbers[static_cast<size_t>(i)];
    const bool is_right = i % 10 == 0 ? number < 0 : word(number) == views[static_cast<size_t>(i)];
    if (!is_right) throw std::runtime_error("a wrong number");
  }
  return look;
}

void mapped(const std::string& path, int64_t tokens, const Report& report) {
  const auto start = Clock::now();
  const double cpu_start = cpu_seconds();
  const auto vocabulary = MappedVocabulary::open(path, {.least_bytes = 1});
  if (vocabulary == nullptr) throw std::runtime_error("the index cannot be written");
  const Look look = {.open_seconds = bench::seconds_since(start),
                     .open_cpu_seconds = cpu_seconds() - cpu_start,
                     .peak_mebibytes = mebibytes("self", "status", "VmHWM")};
  report(look_up([&](const std::string_view* words, int64_t count,
                     int64_t* numbers) { vocabulary->index().find_all(words, count, numbers); },
                 tokens, look));
}

void read(const std::string& path, int64_t tokens, const Report& report) {
  const auto start = Clock::now();
  const double cpu_start = cpu_seconds();
  std::string text(std::filesystem::file_size(path), '\0');
  std::ifstream(path, std::ios::binary).read(text.data(), static_cast<int64_t>(text.size()));
  KeyIndex<std::string_view> index(static_cast<size_t>(tokens));
  const std::string_view bytes = text;
  for (size_t begin = 0; begin < bytes.size();) {
    const size_t end = bytes.find('\n', begin);
    index.insert(bytes.substr(begin, end - begin));
    begin = end + 1;
  }
  const Look look = {.open_seconds = bench::seconds_since(start),
                     .open_cpu_seconds = cpu_seconds() - cpu_start,
                     .peak_mebibytes = mebibytes("self", "status", "VmHWM")};
  report(look_up([&](const std::string_view* words, int64_t count,
                     int64_t* numbers) { index.find_all(words, count, numbers); },
                 tokens, look));
}

// A process that looks words up, says so, and lives until it is let go.
class Process {
 public:
  explicit Process(const std::function<void(const Report&)>& work) {
    int result[2], hold[2];
    if (::pipe(result) != 0 || ::pipe(hold) != 0) throw std::runtime_error("no pipe");
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(hold[1]);
      try {
        work([&](const Look& look) {
          if (::write(result[1], &look, sizeof look) != sizeof look) ::_exit(1);
          char byte = 0;
          if (::read(hold[0], &byte, 1) < 0) ::_exit(1);
        });
      } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        ::_exit(1);
      }
      ::_exit(0);
    }
    ::close(result[1]);
    ::close(hold[0]);
    result_ = result[0];
    hold_ = hold[1];
  }
  ~Process() {
    ::close(hold_);
    ::close(result_);
    ::waitpid(pid_, nullptr, 0);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  Look wait() const {
    Look look;
    if (::read(result_, &look, sizeof look) != sizeof look) throw std::runtime_error("it failed");
    return look;
  }
  // Its own memory, and its share of what others have mapped, too.
  double share_mebibytes() const { return mebibytes(std::to_string(pid_), "smaps_rollup", "Pss"); }

 private:
  pid_t pid_ = -1;
  int result_ = -1, hold_ = -1;
};

void print(const char* name, const Look& look) {
  std::printf("%-22s %9.4f s (%9.4f)  %6.0f MiB  %7.1f ns first, %6.1f ns: %5.2f million/s\n", name,
              look.open_seconds, look.open_cpu_seconds, look.peak_mebibytes, look.first_nanoseconds,
              look.lookup_nanoseconds, 1e3 / look.lookup_nanoseconds);
  std::fflush(stdout);
}

double free_mebibytes() {
  std::ifstream in("/proc/meminfo");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("MemAvailable:", 0) == 0) return std::atof(line.c_str() + 13) / 1024;
  }
  return 0;
}

// `is_shared`: processes share their memory.
void measure(const char* name, const std::function<void(const Report&)>& work, bool is_shared) {
  double memory = 0;
  {
    const Process one(work);
    const Look look = one.wait();
    print(name, look);
    memory = one.share_mebibytes();
    std::printf("%-22s %10.0f MiB\n", "  memory of one", memory);
  }
  if (!is_shared && 4 * memory > free_mebibytes() / 2) {
    std::printf("%-22s not tried: there is too little memory\n", "  memory of four");
    return;
  }
  const Process processes[] = {Process(work), Process(work), Process(work), Process(work)};
  for (const Process& process : processes) process.wait();
  double sum = 0;
  for (const Process& process : processes) sum += process.share_mebibytes();
  std::printf("%-22s %10.0f MiB\n", "  memory of four", sum);
}

int run(int64_t tokens, const std::string& directory) {
  const std::string path = directory + "/bench_vocabulary.txt";
  std::filesystem::remove(path + ".cohort-index");
  write_text(path, tokens);
  std::printf("%lld tokens, %.0f MiB of text\n", static_cast<long long>(tokens),
              static_cast<double>(std::filesystem::file_size(path)) / (1 << 20));
  const auto map = [&](const Report& report) { mapped(path, tokens, report); };
  print("mapped, with building", Process(map).wait());
  measure("mapped", map, true);
  measure(
      "read", [&](const Report& report) { read(path, tokens, report); }, false);
  std::printf("%-22s %10.0f MiB\n", "index",
              static_cast<double>(std::filesystem::file_size(path + ".cohort-index")) / (1 << 20));
  std::filesystem::remove(path + ".cohort-index");
  std::filesystem::remove(path);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  cohort::logging::set_level(cohort::logging::Level::kWarning);
  try {
    const int64_t tokens = argc > 1 ? std::atoll(argv[1]) : 10'000'000;
    return run(tokens, argc > 2 ? argv[2] : std::filesystem::temp_directory_path().string());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_vocabulary: %s\n", error.what());
    return 1;
  }
}

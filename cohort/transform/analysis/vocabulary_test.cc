#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "cohort/core/error.h"
#include "cohort/core/files/crc32c.h"
#include "cohort/core/files/temporary_files.h"
#include "cohort/core/testing_errors.h"
#include "cohort/transform/analysis/testing_analyses.h"
#include "cohort/transform/analysis/token_amounts.h"

namespace cohort::internal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Batches strings(const std::vector<std::vector<std::string>>& batches) {
  Batches out;
  for (const auto& values : batches) out.push_back({dense(StringTensor(values))});
  return out;
}

// The text of the vocabulary that the batches give.
std::string vocabulary(const VocabularyOptions& options, const Batches& batches) {
  AnalysisFolder folder;
  const auto result = analyse(*vocabulary_analysis(options), batches, folder.context());
  const std::string text = folder.files.content(result.file->path);
  EXPECT_EQ(result.file->lines, std::count(text.begin(), text.end(), '\n'));
  EXPECT_EQ(result.constant("size").tensor().item<int64_t>(), result.file->lines);
  EXPECT_EQ(result.file->bytes, text.size());
  EXPECT_EQ(result.file->crc32c, crc32c(text));
  EXPECT_THAT(folder.files.list("/spill"), IsEmpty());
  return text;
}

const Batches& letters() {
  static const Batches batches = strings({{"a", "b", "c", "b", "c", "c"}, {"d", "d", "hello"}});
  return batches;
}

TEST(Vocabulary, HasTheMostFrequentTokenFirstThenTheGreatest) {
  EXPECT_EQ(vocabulary({}, letters()), "c\nd\nb\nhello\na\n");
  EXPECT_EQ(vocabulary({}, strings({{"\xc3\xa9", "Zz", "a", "\xff\xfe"}})),
            "\xff\xfe\n\xc3\xa9\na\nZz\n");
}

TEST(Vocabulary, IsCut) {
  EXPECT_EQ(vocabulary({.top_k = 2}, letters()), "c\nd\n");
  EXPECT_EQ(vocabulary({.top_k = 99}, letters()), "c\nd\nb\nhello\na\n");
  EXPECT_EQ(vocabulary({.frequency_threshold = 1.5}, letters()), "c\nd\nb\n");
  EXPECT_EQ(vocabulary({.frequency_threshold = 2}, letters()), "c\nd\nb\n");
  EXPECT_EQ(vocabulary({.top_k = 1, .frequency_threshold = 2}, letters()), "c\n");
}

TEST(Vocabulary, StoresFrequencies) {
  EXPECT_EQ(vocabulary({.store_frequency = true}, letters()), "3 c\n2 d\n2 b\n1 hello\n1 a\n");
}

TEST(Vocabulary, LeavesOutWhatIsNoLine) {
  EXPECT_EQ(vocabulary({}, strings({{"", "a\nb", "a\rb", " ", "a\tb", std::string("a\0b", 3)}})),
            std::string("a\tb\na\0b\n \n", 10));
}

TEST(Vocabulary, OfNothingHasTensorFlowTransformsLine) {
  constexpr auto kNone = "49d0cd50-04bb-48c0-bc6f-5b575dce351a\n";
  EXPECT_EQ(vocabulary({}, {}), kNone);
  EXPECT_EQ(vocabulary({}, strings({{"", "\n"}})), kNone);
  EXPECT_EQ(vocabulary({.frequency_threshold = 100, .store_frequency = true}, letters()),
            "1 " + std::string(kNone));
  EXPECT_EQ(vocabulary({.frequency_threshold = 100}, {{dense(of_vector(std::vector<int64_t>{5}))}}),
            "-1\n");
}

TEST(Vocabulary, OfIntegersHasTheirDigits) {
  const Tensor values = of_vector(std::vector<int64_t>{1, 10, 9, 2, -5, 100, 20, 1, 1, 9});
  EXPECT_EQ(vocabulary({}, {{dense(values)}}), "1\n9\n20\n2\n100\n10\n-5\n");
  constexpr auto kLowest = std::numeric_limits<int64_t>::lowest();
  EXPECT_EQ(vocabulary({}, {{dense(of_vector(std::vector<int64_t>{kLowest}))}}),
            "-9223372036854775808\n");
}

TEST(Vocabulary, ReservesTheFirstLines) {
  EXPECT_EQ(vocabulary({.top_k = 2, .reserved_tokens = {"<pad>", "c"}}, letters()),
            "<pad>\nc\nd\n");
  EXPECT_EQ(vocabulary({.reserved_tokens = {"<pad>", "c"}}, letters()),
            "<pad>\nc\nd\nb\nhello\na\n");
  EXPECT_EQ(vocabulary({.store_frequency = true, .reserved_tokens = {"c"}}, strings({{"c", "d"}})),
            "-1 c\n1 d\n");
}

ColumnBatch weights(std::vector<float> values) { return dense(of_vector(values)); }

TEST(Vocabulary, SumsWeights) {
  const ColumnBatch tokens = dense(StringTensor{"a", "b", "c", "b", "d", "e"});
  const VocabularyOptions options = {.weighted = true, .store_frequency = true};
  EXPECT_EQ(vocabulary(options, {{tokens, weights({0.5, 1, 3, 0.75, 0, -1})}}),
            "3.0 c\n1.75 b\n0.5 a\n0.0 d\n-1.0 e\n");
  VocabularyOptions cut = options;
  cut.frequency_threshold = 1.75;
  EXPECT_EQ(vocabulary(cut, {{tokens, weights({0.5, 1, 3, 0.75, 0, -1})}}), "3.0 c\n1.75 b\n");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(vocabulary(options, {{tokens, weights({nan, infinity, 3, -infinity, 0, -infinity})}}),
            "3.0 c\n0.0 d\n-inf e\nnan b\nnan a\n");
}

TEST(Vocabulary, TakesAWeightForEachRow) {
  const VocabularyOptions options = {.weighted = true, .store_frequency = true};
  const auto some = ragged(StringTensor{"a", "b", "a"}, {0, 2, 2, 3});
  EXPECT_EQ(vocabulary(options, {{some, weights({2, 5, 0.25})}}), "2.25 a\n2.0 b\n");
  const auto square = dense(StringTensor({"a", "b", "a", "c"}, {2, 2}));
  EXPECT_EQ(vocabulary(options, {{square, weights({2, 5})}}), "7.0 a\n5.0 c\n2.0 b\n");
}

TEST(Vocabulary, RefusesWhatItCannotTake) {
  expect_error<InvalidArgumentError>([] { vocabulary_analysis({.top_k = 0}); },
                                     "top_k must be positive, but got: 0");
  expect_error<InvalidArgumentError>([] { vocabulary_analysis({.frequency_threshold = -1}); },
                                     "must be non-negative, but got: -1");
  expect_error<InvalidArgumentError>([] { vocabulary_analysis({.frequency_threshold = NAN}); },
                                     "nan");
  expect_error<InvalidArgumentError>([] { vocabulary_analysis({.reserved_tokens = {"a\n"}}); },
                                     "newline");
  expect_error<InvalidArgumentError>(
      [] {
        vocabulary_analysis({.reserved_tokens = {"a", "a"}});
      },
      "twice");
  expect_error<InvalidArgumentError>([] { vocabulary({}, {{weights({1})}}); },
                                     "tokens are strings or integers, but a batch has float32");
  expect_error<InvalidArgumentError>(
      [] {
        vocabulary({.weighted = true}, {{dense(StringTensor{"a", "b"}), weights({1})}});
      },
      "there are 1");
}

// Tokens with shared beginnings, some of them frequent, for tests of spilling.
Batches many_tokens(int batches, unsigned seed) {
  std::mt19937 random(seed);
  Batches out;
  for (int i = 0; i < batches; ++i) {
    std::vector<std::string> tokens(50);
    std::vector<float> some_weights;
    for (std::string& token : tokens) {
      token = "token_" + std::to_string(random() % (random() % 2 == 0 ? 20 : 2000));
      some_weights.push_back(
          std::ldexp(static_cast<float>(random() % 1000), static_cast<int>(random() % 60)));
    }
    out.push_back({dense(StringTensor(tokens)), dense(of_vector(some_weights))});
  }
  return out;
}

std::string in_parts(const VocabularyOptions& options, const Batches& batches, unsigned seed,
                     size_t memory_limit) {
  AnalysisFolder folder(memory_limit);
  const auto result =
      analyse_in_parts(*vocabulary_analysis(options), batches, 3, seed, folder.context());
  EXPECT_THAT(folder.files.list("/spill"), IsEmpty());
  return folder.files.content(result.file->path);
}

TEST(Vocabulary, IsTheSameUnderAnyMemoryLimitAndDivision) {
  const Batches weighted = many_tokens(40, 1);
  Batches counted;
  for (const auto& batch : weighted) counted.push_back({batch[0]});
  for (const bool is_weighted : {false, true}) {
    const VocabularyOptions all = {.weighted = is_weighted, .store_frequency = true};
    VocabularyOptions first = all;
    first.top_k = 30;
    const Batches& batches = is_weighted ? weighted : counted;
    const std::string whole = vocabulary(all, batches);
    const std::string beginning = vocabulary(first, batches);
    EXPECT_TRUE(whole.starts_with(beginning));
    EXPECT_EQ(std::count(beginning.begin(), beginning.end(), '\n'), 30);
    unsigned seed = 0;
    for (const size_t limit : {size_t{1} << 20, size_t{60000}, size_t{20000}}) {
      EXPECT_EQ(in_parts(all, batches, ++seed, limit), whole) << limit;
      EXPECT_EQ(in_parts(first, batches, ++seed, limit), beginning) << limit;
    }
  }
}

TEST(Vocabulary, IsTheSameWithAFileForEachToken) {
  const Batches batches = many_tokens(4, 5);
  EXPECT_EQ(in_parts({.weighted = true}, batches, 1, 1), vocabulary({.weighted = true}, batches));
}

TEST(Vocabulary, GoesFromTaskToTaskInBoundedPieces) {
  AnalysisFolder folder;
  const auto analysis = vocabulary_analysis();
  const auto accumulator = analysis->start(folder.context());
  std::vector<std::string> tokens;
  for (int i = 0; i < 3000; ++i) tokens.push_back(std::to_string(i * 7919) + std::string(500, 'x'));
  const ColumnBatch column = dense(StringTensor(tokens));
  accumulator->add({&column, 1});
  const auto restored = analysis->start(folder.context());
  int pieces = 0;
  for (auto saved = accumulator->save(); auto piece = saved->next(); ++pieces) {
    EXPECT_LT(piece->size(), kPieceBytes + 1000);
    restored->add_saved(*piece, "a test");
  }
  EXPECT_GT(pieces, 1);
  EXPECT_EQ(folder.files.content(restored->finish().file->path),
            folder.files.content(accumulator->finish().file->path));
}

TEST(Vocabulary, LeavesNothingBehindOnAFullDisk) {
  const Batches batches = many_tokens(20, 2);
  for (const uint64_t capacity : {100, 3000, 9000, 15000, 20000, 60000}) {
    AnalysisFolder folder(20000);
    folder.files.set_capacity(capacity);
    try {
      const auto result = analyse_in_parts(*vocabulary_analysis({.weighted = true}), batches, 2, 1,
                                           folder.context());
      EXPECT_GT(capacity, 9000u);
      folder.files.remove(result.file->path);
    } catch (const ResourceExhaustedError& error) {
      EXPECT_LT(capacity, 60000u);
      EXPECT_THAT(error.what(), HasSubstr("free space there"));
    }
    EXPECT_THAT(folder.files.file_paths(), IsEmpty());
  }
}

TEST(Vocabulary, FailsCleanlyWhicheverCallFails) {
  const Batches batches = many_tokens(4, 3);
  const auto analysis = vocabulary_analysis({.weighted = true});
  for (int64_t call = 1;; ++call) {
    AnalysisFolder folder(24000);
    folder.files.set_faults({.fail_at = folder.files.calls() + call});
    try {
      const auto result = analyse(*analysis, batches, folder.context());
      if (folder.files.calls() < call) {
        EXPECT_GT(call, 20) << "nothing was spilled";
        break;
      }
      folder.files.remove(result.file->path);  // a removal failed
    } catch (const Error&) {
      const auto left = folder.files.file_paths();
      EXPECT_LE(left.size(), 1u) << call;  // what could not be removed
    }
  }
}

TEST(Vocabulary, FindsDamagedRuns) {
  AnalysisFolder folder(20000);
  const auto accumulator = vocabulary_analysis({.weighted = true})->start(folder.context());
  for (const auto& batch : many_tokens(4, 4)) accumulator->add(batch);
  const auto runs = folder.files.list("/spill");
  ASSERT_FALSE(runs.empty());
  const std::string path = "/spill/" + runs[0];
  std::string bytes = folder.files.content(path);
  bytes[bytes.size() / 3] ^= 1;
  folder.files.set_content(path, bytes);
  expect_error<DataLossError>([&] { accumulator->finish(); }, path);
}

TEST(Vocabulary, RemovesTheFilesOfDeadProcesses) {
  AnalysisFolder folder(20000);
  // The name is of a process of this host that has ended: Linux gives no number as high.
  std::string name = base_name(unlocked_temporary_path("", "tokens"));
  const size_t pid = name.find('.', kUnlockedPrefix.size()) + 1;
  name.replace(pid, name.find('.', pid) - pid, "999999999");
  folder.files.set_content("/spill/" + name, "left");
  const auto accumulator = vocabulary_analysis({.weighted = true})->start(folder.context());
  for (const auto& batch : many_tokens(4, 4)) accumulator->add(batch);
  EXPECT_FALSE(folder.files.list("/spill").empty());
  EXPECT_FALSE(folder.files.exists("/spill/" + name));
}

TEST(ExactWeight, IsExactInAnyOrder) {
  std::mt19937_64 random(9);
  for (int trial = 0; trial < 30; ++trial) {
    std::vector<double> values = {1e308, -1e308};
    for (int i = 0; i < 40; ++i) {
      values.push_back(std::ldexp(static_cast<double>(static_cast<int64_t>(random())),
                                  static_cast<int>(random() % 400) - 200));
    }
    ExactSum sum;
    for (const double value : values) sum.add(value);
    std::shuffle(values.begin(), values.end(), random);
    ExactWeight first;
    ExactWeight second;
    for (size_t i = 0; i < values.size(); ++i) (i % 3 == 0 ? first : second).add(values[i]);
    std::string bytes;
    second.append_to(bytes);
    std::string_view left = bytes;
    first.add(ExactWeight::take(left));
    EXPECT_TRUE(left.empty());
    EXPECT_EQ(first.final().value, sum.rounded(kFloat64Form));
  }
}

TEST(FinalWeight, IsWrittenAsPythonWritesIt) {
  const std::pair<double, std::string> expected[] = {{0, "0.0"},
                                                     {-0.0, "-0.0"},
                                                     {3, "3.0"},
                                                     {0.1, "0.1"},
                                                     {1e15, "1000000000000000.0"},
                                                     {1e16, "1e+16"},
                                                     {1.5e300, "1.5e+300"},
                                                     {0.0001, "0.0001"},
                                                     {0.00001, "1e-05"},
                                                     {-123456.789, "-123456.789"},
                                                     {1e22, "1e+22"}};
  for (const auto& [value, text] : expected) EXPECT_EQ(FinalWeight{value}.text(), text);
}

TEST(CountPerKey, HasTheKeysInOrder) {
  const auto result = analyse(*count_per_key_analysis(), strings({{"b", "a", ""}, {"b"}}));
  EXPECT_EQ(result.constant("keys").strings(), (StringTensor{"", "a", "b"}));
  EXPECT_TRUE(result.constant("counts").tensor().equal(of_vector(std::vector<int64_t>{1, 1, 2})));
  const auto integers =
      analyse(*count_per_key_analysis(), {{dense(of_vector(std::vector<int64_t>{10, 9, -3, 9}))}});
  EXPECT_TRUE(integers.constant("keys").tensor().equal(of_vector(std::vector<int64_t>{-3, 10, 9})));
  const auto none = analyse(*count_per_key_analysis(), {});
  EXPECT_EQ(none.constant("keys").strings().numel(), 0);
  EXPECT_EQ(none.constant("counts").tensor().numel(), 0);
}

TEST(BucketCounts, CountEachBucket) {
  const auto analysis = bucket_counts_analysis(4);
  const Batches batches = {{dense(of_vector(std::vector<int64_t>{0, 3, 3}))},
                           {ragged(of_vector(std::vector<int64_t>{1, 3}), {0, 0, 2})}};
  const Tensor expected = of_vector(std::vector<int64_t>{1, 1, 0, 3});
  EXPECT_TRUE(analyse(*analysis, batches).constant("counts").tensor().equal(expected));
  AnalysisFolder folder;
  EXPECT_TRUE(analyse_in_parts(*analysis, batches, 2, 1, folder.context())
                  .constant("counts")
                  .tensor()
                  .equal(expected));
  for (const int64_t wrong : {-1, 4}) {
    expect_error<InvalidArgumentError>(
        [&] { analyse(*analysis, {{dense(of_vector(std::vector<int64_t>{wrong}))}}); },
        "is not in [0, 4)");
  }
}

TEST(DocumentFrequencies, CountTheRowsOfAnIndexOnce) {
  const auto analysis = document_frequencies_analysis();
  const auto some = ragged(of_vector(std::vector<int64_t>{2, 2, 0, 2}), {0, 3, 3, 4});
  const auto square = dense(of_vector(std::vector<int64_t>{0, 0, 4, 2}).view({2, 2}));
  const Batches batches = {{some}, {square}, {some}};
  AnalysisFolder folder;
  for (unsigned seed = 0; seed < 6; ++seed) {
    const auto result = analyse_in_parts(*analysis, batches, 3, seed, folder.context());
    EXPECT_TRUE(result.constant("documents")
                    .tensor()
                    .equal(of_vector(std::vector<int64_t>{3, 0, 5, 0, 1})));
    EXPECT_EQ(result.constant("rows").tensor().item<int64_t>(), 8);
  }
  EXPECT_EQ(analyse(*analysis, {}).constant("documents").tensor().numel(), 0);
}

}  // namespace
}  // namespace cohort::internal

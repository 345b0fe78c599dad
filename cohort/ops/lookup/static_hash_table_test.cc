#include "cohort/ops/lookup/static_hash_table.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "cohort/core/testing_errors.h"
#include "cohort/core/testing_folder.h"
#include "cohort/ops/lookup/testing_text_file.h"
#include "cohort/ops/vocabulary/mapped_vocabulary.h"

namespace cohort::lookup {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<int64_t> ints(const Structure& structure) {
  const Tensor flat = structure.tensor().to(at::kLong).contiguous();
  return {flat.data_ptr<int64_t>(), flat.data_ptr<int64_t>() + flat.numel()};
}

Tensor longs(const std::vector<int64_t>& values) {
  return at::tensor(values, at::dtype(at::kLong));
}

StaticHashTable answers() {
  return {KeyValueTensorInitializer(StringTensor({"no", "yes"}), longs({10, 20})), -1};
}

TEST(StaticHashTable, LooksUpStrings) {
  const StaticHashTable table = answers();
  EXPECT_EQ(table.size(), 2);
  EXPECT_THAT(ints(table.lookup(StringTensor({"yes", "perhaps", "no"}))), ElementsAre(20, -1, 10));
  EXPECT_THAT(ints(table[StringTensor::scalar("no")]), ElementsAre(10));
}

TEST(StaticHashTable, KeepsShapes) {
  const StaticHashTable table = answers();
  EXPECT_EQ(table[StringTensor::scalar("no")].tensor().dim(), 0);
  const StringTensor keys({"no", "x", "no", "yes", "x", "x"}, {3, 1, 2});
  EXPECT_THAT(table[keys].tensor().sizes(), ElementsAre(3, 1, 2));
  EXPECT_THAT(table[StringTensor({}, {0, 2})].tensor().sizes(), ElementsAre(0, 2));
}

TEST(StaticHashTable, OfIntegersToStrings) {
  const StaticHashTable table(KeyValueTensorInitializer(longs({5, -7}), StringTensor({"five", ""})),
                              "?");
  const Structure words = table[longs({-7, 5, 6}).view({3, 1})];
  EXPECT_EQ(words.strings(), StringTensor({"", "five", "?"}, {3, 1}));
  EXPECT_THAT(table[at::tensor({5, 6}, at::dtype(at::kInt))].strings().to_vector(),
              ElementsAre("five", "?"));
}

// What a lookup returned outlives the table, whose bytes it shows.
TEST(StaticHashTable, ResultsOutliveIt) {
  StringTensor words;
  {
    const StaticHashTable table(
        KeyValueTensorInitializer(longs({1}), StringTensor({"a string of no small size"})),
        "what is not in the table, at some length");
    words = table[longs({1, 2})];
  }
  EXPECT_THAT(words.to_vector(),
              ElementsAre("a string of no small size", "what is not in the table, at some length"));
}

TEST(StaticHashTable, DoesNotChangeWithWhatItWasMadeOf) {
  const Tensor keys = longs({1, 2}), values = longs({10, 20}), missing = longs({-1});
  const StaticHashTable table(KeyValueTensorInitializer(keys, values), missing);
  for (const Tensor& tensor : {keys, values, missing}) tensor.fill_(7);
  EXPECT_THAT(ints(table[longs({1, 2, 7})]), ElementsAre(10, 20, -1));
  EXPECT_THAT(ints(table.keys()), ElementsAre(1, 2));
}

TEST(StaticHashTable, DoesNotChangeWithWhatItReturned) {
  const StaticHashTable table(KeyValueTensorInitializer(longs({1, 2}), longs({10, 20})), -1);
  table.keys().tensor().fill_(7);
  table.values().tensor().fill_(7);
  table[longs({1, 2, 3})].tensor().fill_(7);
  EXPECT_THAT(ints(table[longs({1, 2, 7})]), ElementsAre(10, 20, -1));
  EXPECT_THAT(ints(table.keys()), ElementsAre(1, 2));
  EXPECT_THAT(ints(table.values()), ElementsAre(10, 20));
}

// An initializer of a program's own may give tensors that it keeps.
TEST(StaticHashTable, DoesNotChangeWithWhatAnInitializerKeeps) {
  struct KeepingInitializer final : TableInitializer {
    TableEntries read() const override {
      return {keys, values, [](int64_t i) { return std::to_string(i); }};
    }
    Tensor keys = longs({1, 2}), values = longs({10, 20});
  } initializer;
  const StaticHashTable table(initializer, -1);
  initializer.keys.fill_(7);
  initializer.values.fill_(7);
  EXPECT_THAT(ints(table[longs({1, 2, 7})]), ElementsAre(10, 20, -1));
  EXPECT_THAT(ints(table.values()), ElementsAre(10, 20));
}

TEST(StaticHashTable, ValuesKeepTheirDtype) {
  for (const DType dtype : {uint8, DType::Short, int32, float32, int64, float64}) {
    const StaticHashTable table(KeyValueTensorInitializer(longs({1, 2}), longs({0, 1}).to(dtype)),
                                1);
    EXPECT_EQ(table.value_dtype(), LeafType(dtype));
    const Tensor found = table[longs({1, 2, 3})];
    EXPECT_EQ(found.scalar_type(), dtype);
    EXPECT_THAT(ints(found), ElementsAre(0, 1, 1));
  }
  const StaticHashTable flags(KeyValueTensorInitializer(longs({1}), longs({0}).to(boolean)), true);
  EXPECT_THAT(ints(flags[longs({1, 3})]), ElementsAre(0, 1));
  EXPECT_EQ(answers().key_dtype(), LeafType(cohort::string));
}

TEST(StaticHashTable, AKeyTwiceNeedsOneValue) {
  const StaticHashTable table(
      KeyValueTensorInitializer(StringTensor({"a", "b", "a", "c"}), longs({1, 2, 1, 3})), 0);
  EXPECT_EQ(table.size(), 3);
  EXPECT_THAT(table.keys().strings().to_vector(), ElementsAre("a", "b", "c"));
  EXPECT_THAT(ints(table[StringTensor({"c", "b", "a"})]), ElementsAre(3, 2, 1));
  EXPECT_THAT(thrown<InvalidArgumentError>([] {
                StaticHashTable(
                    KeyValueTensorInitializer(StringTensor({"a", "b", "a"}), longs({1, 2, 3})), 0);
              }),
              AllOf(HasSubstr("'a'"), HasSubstr("entry 0"), HasSubstr("entry 2")));
}

TEST(StaticHashTable, RefusesOtherKinds) {
  EXPECT_THAT(thrown<InvalidArgumentError>([] { answers()[longs({1})]; }),
              AllOf(HasSubstr("string keys"), HasSubstr("int64 [1]")));
  const KeyValueTensorInitializer numbers(longs({1}), longs({1}));
  EXPECT_THROW(StaticHashTable(numbers, 0)[at::tensor({1.5})], InvalidArgumentError);
  EXPECT_THROW(StaticHashTable(numbers, 0)[StringTensor({"1"})], InvalidArgumentError);
  EXPECT_THROW(StaticHashTable(numbers, "text"), InvalidArgumentError);
  EXPECT_THROW(StaticHashTable(numbers, 0.5), InvalidArgumentError);
  EXPECT_THROW(StaticHashTable(numbers, longs({1, 2})), InvalidArgumentError);
  EXPECT_THROW(KeyValueTensorInitializer(longs({1, 2}), longs({1})), InvalidArgumentError);
  EXPECT_THROW(KeyValueTensorInitializer(longs({1}).view({1, 1}), longs({1}).view({1, 1})),
               InvalidArgumentError);
  EXPECT_THROW(KeyValueTensorInitializer(at::tensor({1.5}), longs({1})), InvalidArgumentError);
}

TEST(StaticHashTable, IsReadByManyThreads) {
  std::vector<std::string> words;
  for (int i = 0; i < 1000; ++i) words.push_back("word " + std::to_string(i));
  const StringTensor keys(words);
  const StaticHashTable table(KeyValueTensorInitializer(keys, at::arange(1000, at::kLong)), -1);
  std::vector<std::thread> threads;
  std::vector<int> results(4);
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back(
        [&, t] { results[t] = table[keys].tensor().equal(at::arange(1000, at::kLong)); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(results, ElementsAre(1, 1, 1, 1));
}

TEST(TextFileInitializer, LinesToTheirNumbers) {
  const TextFile file("emerson 10\r\nlake 20\npalmer 30");
  const StaticHashTable table(TextFileInitializer(file.path(), {.value_index_offset = 3}), -1);
  EXPECT_EQ(table.size(), 3);
  EXPECT_THAT(ints(table[StringTensor({"palmer 30", "emerson 10", "lake"})]),
              ElementsAre(5, 3, -1));
}

TEST(TextFileInitializer, Columns) {
  const TextFile file("emerson\t10\nlake\t 20 \npalmer\t-3\tx\n");
  const StaticHashTable table(
      TextFileInitializer(file.path(), {.key_index = 0, .value_dtype = int32, .value_index = 1}),
      7);
  EXPECT_EQ(table.value_dtype(), LeafType(int32));
  EXPECT_THAT(ints(table[StringTensor({"palmer", "lake", "emerson", "x"})]),
              ElementsAre(-3, 20, 10, 7));
  const StaticHashTable names(TextFileInitializer(file.path(), {.key_dtype = int64,
                                                                .key_index = 1,
                                                                .value_dtype = cohort::string,
                                                                .value_index = 0,
                                                                .vocab_size = 2}),
                              "nobody");
  EXPECT_THAT(names[longs({20, -3})].strings().to_vector(), ElementsAre("lake", "nobody"));
}

TEST(TextFileInitializer, WrongFilesAreNamedWithTheirPlace) {
  const auto load = [](const std::string& content, TextFileInitializerOptions options) {
    return thrown<InvalidArgumentError>([&] {
      const TextFile file(content);
      StaticHashTable(TextFileInitializer(file.path(), options), -1);
    });
  };
  EXPECT_THAT(load("a\n\nb\n", {}), AllOf(HasSubstr("line 2"), HasSubstr("offset 2")));
  EXPECT_THAT(load("a\nb\nc\nb", {}), AllOf(HasSubstr("'b'"), HasSubstr("line 2 (byte offset 2)"),
                                            HasSubstr("line 4 (byte offset 6)")));
  EXPECT_THAT(load("a\t1\nb\n", {.key_index = 0, .value_index = 1}),
              AllOf(HasSubstr("line 2"), HasSubstr("column 1")));
  EXPECT_THAT(load("a\t1\nb\t1x\n", {.key_index = 0, .value_index = 1}),
              AllOf(HasSubstr("line 2"), HasSubstr("'1x'"), HasSubstr("int64")));
  EXPECT_THAT(load("9223372036854775808\t1", {.key_dtype = int64, .key_index = 0}),
              HasSubstr("int64"));
  EXPECT_THAT(load("a\nb\n", {.vocab_size = 3}), HasSubstr("2 lines"));
}

TEST(TextFileInitializer, RefusesWhatDoesNotFit) {
  EXPECT_THROW(TextFileInitializer("x", {.key_index = -3}), InvalidArgumentError);
  EXPECT_THROW(TextFileInitializer("x", {.value_dtype = cohort::string}), InvalidArgumentError);
  EXPECT_THROW(TextFileInitializer("x", {.key_dtype = float32}), InvalidArgumentError);
  EXPECT_THROW(TextFileInitializer("x", {.value_dtype = boolean, .value_index = 1}),
               InvalidArgumentError);
  EXPECT_THROW(TextFileInitializer("x", {.vocab_size = 0}), InvalidArgumentError);
  EXPECT_THAT(
      thrown<NotFoundError>([] { StaticHashTable(TextFileInitializer("/nowhere/words.txt"), -1); }),
      HasSubstr("/nowhere/words.txt"));
}

// A mapped file gives all that a file which is read gives. A small file is mapped if somebody has
// built its index.
TEST(TextFileInitializer, MapsFiles) {
  const TextFile file("a\nbb\r\nc c\nd\n");
  const TextFile mapped("a\nbb\r\nc c\nd\n");
  ASSERT_NE(internal::MappedVocabulary::open(mapped.path(), {.least_bytes = 1}), nullptr);
  const StringTensor keys({"d", "bb", "bb\r", "", "x", "c c"}, {3, 2});
  for (const TextFileInitializerOptions& options :
       {TextFileInitializerOptions{}, TextFileInitializerOptions{.value_index_offset = 7},
        TextFileInitializerOptions{.vocab_size = 3}, TextFileInitializerOptions{.vocab_size = 4}}) {
    EXPECT_FALSE(TextFileInitializer(file.path(), options).read().lines.has_value());
    EXPECT_TRUE(TextFileInitializer(mapped.path(), options).read().lines.has_value());
    const StaticHashTable a(TextFileInitializer(file.path(), options), -5);
    const StaticHashTable b(TextFileInitializer(mapped.path(), options), -5);
    EXPECT_TRUE(a[keys].tensor().equal(b[keys].tensor()));
    EXPECT_EQ(a.size(), b.size());
    EXPECT_EQ(a.keys().strings(), b.keys().strings());
    EXPECT_TRUE(a.values().tensor().equal(b.values().tensor()));
    EXPECT_EQ(a.key_dtype(), b.key_dtype());
    EXPECT_EQ(a.value_dtype(), b.value_dtype());
    EXPECT_THROW(b[longs({1})], InvalidArgumentError);
    EXPECT_THROW(StaticHashTable(TextFileInitializer(mapped.path(), options), "text"),
                 InvalidArgumentError);
  }
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                StaticHashTable(TextFileInitializer(mapped.path(), {.vocab_size = 5}), -1);
              }),
              HasSubstr("has 4 lines, but vocab_size is 5"));
}

TEST(TextFileInitializer, MapsColumns) {
  const internal::TemporaryFolder folder;
  const std::string path = folder.write("counts.txt", "10 the\n7 of\n7 a b\n");
  ASSERT_NE(internal::MappedVocabulary::open(path, {.column = {1, ' '}, .least_bytes = 1}),
            nullptr);
  const TextFileInitializer column(path, {.key_index = 1, .delimiter = ' '});
  EXPECT_TRUE(column.read().lines.has_value());
  const StaticHashTable table(column, -1);
  EXPECT_THAT(ints(table[StringTensor({"of", "a", "a b", "7", "the"})]),
              ElementsAre(1, 2, -1, -1, 0));
  EXPECT_THAT(table.keys().strings().to_vector(), ElementsAre("the", "of", "a"));
  // Counts are numbers of the file: it is read.
  const TextFileInitializer counts(path, {.key_index = 1, .value_index = 0, .delimiter = ' '});
  EXPECT_FALSE(counts.read().lines.has_value());
  EXPECT_THAT(ints(StaticHashTable(counts, -1)[StringTensor({"of"})]), ElementsAre(7));
}

// An empty file is an empty table, as an empty list is.
TEST(TextFileInitializer, MayBeEmpty) {
  const TextFile file("");
  const StaticHashTable table(TextFileInitializer(file.path()), -1);
  EXPECT_EQ(table.size(), 0);
  EXPECT_THAT(ints(table[StringTensor({"", "a"})]), ElementsAre(-1, -1));
}

}  // namespace
}  // namespace cohort::lookup

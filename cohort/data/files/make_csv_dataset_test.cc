#include "cohort/data/files/make_csv_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/data/sharding/auto_shard.h"
#include "cohort/data/test_util.h"
#include "cohort/data/testing_files.h"

namespace cohort::data {
namespace {

using experimental::make_csv_dataset;
using experimental::MakeCsvDatasetOptions;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAreArray;

struct MakeCsv : FilesTest {
  // One pass in the files' order, unless `options` say otherwise.
  static MakeCsvDatasetOptions once(MakeCsvDatasetOptions options = {}) {
    options.num_epochs = 1;
    options.shuffle = false;
    return options;
  }
  std::vector<std::string> read(const std::string& content, MakeCsvDatasetOptions options = {}) {
    return texts(make_csv_dataset(write("a.csv", content), 2, once(std::move(options))));
  }
  // "int32 string", of the columns as they are inferred.
  std::string types(const std::string& content, MakeCsvDatasetOptions options = {}) {
    const Dataset dataset = make_csv_dataset(write("a.csv", content), 2, once(std::move(options)));
    std::string text;
    const StructureSpec spec = dataset.element_spec();
    for (const auto& [name, column] : spec.items()) {
      const auto& leaf = column.leaf();
      text += (text.empty() ? "" : " ") +
              (leaf.is_string() ? "string" : internal::dtype_name(leaf.dtype()));
    }
    return text;
  }
  std::string error(const std::string& content, MakeCsvDatasetOptions options = {}) {
    return thrown<InvalidArgumentError>([&] { read(content, std::move(options)); });
  }
};

TEST_F(MakeCsv, GivesBatchesOfColumns) {
  EXPECT_THAT(read("n,x,s\n1,0.5,a\n2,,b\n,1.5,\n"),
              ElementsAre("{'n': [1, 2], 'x': [0.5, 0.0], 's': [\"a\", \"b\"]}",
                          "{'n': [0], 'x': [1.5], 's': [\"\"]}"));
  EXPECT_THAT(read("n,s\n1,a\n2,b\n", {.label_name = "n"}),
              ElementsAre("({'s': [\"a\", \"b\"]}, [1, 2])"));
  EXPECT_THAT(read("n\n1\n2\n", {.label_name = "n"}), ElementsAre("({}, [1, 2])"));
  const Dataset dataset = make_csv_dataset(path("a.csv"), 2, once({.label_name = "n"}));
  for (const Structure& batch : dataset) {
    EXPECT_FALSE(dataset.element_spec().first_mismatch(batch)) << batch;
  }
}

TEST_F(MakeCsv, TypesFitTheFirstRows) {
  EXPECT_EQ(types("a,b,c,d,e\n1,2147483648,0.5,1e300,x\n"), "int32 int64 float32 float64 string");
  EXPECT_EQ(types("a,b\n1,x\n2147483648,2\n"), "int64 string");
  EXPECT_EQ(types("a,b,c\n1,2.5,1e300\n2.5,1,1\n"), "float32 float32 float64");
  // Missing values say nothing, and a column without any other is one of strings.
  EXPECT_EQ(types("a,b,c\n,,NA\n,,\n7,,NA\n", {.na_value = "NA"}), "int32 string string");
  EXPECT_EQ(types("a,b\n"), "string string");
  EXPECT_EQ(types("a,b,c,d\n 5 ,nan,inf,-inf\n"), "int32 string string float32");
  EXPECT_EQ(types("a\n1\nx\n", {.num_rows_for_inference = 1}), "int32");
  EXPECT_EQ(types("a\n1\nx\n", {.num_rows_for_inference = std::nullopt}), "string");
  EXPECT_EQ(types("a\n1\n", {.num_rows_for_inference = 0}), "string");
  EXPECT_THAT(error("a\n1\n", {.num_rows_for_inference = -1}),
              HasSubstr("num_rows_for_inference is -1"));
  // Rows count over all files.
  write("b.csv", "a\n1\n");
  write("c.csv", "a\nx\n");
  const auto both = [&](int64_t rows) {
    return internal::str(
        make_csv_dataset({path("b.csv"), path("c.csv")}, 2, once({.num_rows_for_inference = rows}))
            .element_spec());
  };
  EXPECT_THAT(both(1), HasSubstr("int32"));
  EXPECT_THAT(both(2), HasSubstr("string"));
}

TEST_F(MakeCsv, TypesAndDefaultsMayBeGiven) {
  EXPECT_EQ(types("a,b\n1,2\n", {.column_defaults = {float64, "none"}}), "float64 string");
  EXPECT_THAT(read("a,b\n1,\n", {.column_defaults = {float64, "none"}}),
              ElementsAre("{'a': [1.0], 'b': [\"none\"]}"));
  EXPECT_THAT(error("a,b\n1,2\n,3\n", {.column_defaults = {int32, int32}}),
              HasSubstr("line 3: field 1 ('a') is required, but empty"));
  EXPECT_THAT(error("a,b\n1,2\n", {.column_defaults = {int32}}),
              HasSubstr("column_defaults has 1 entries for 2 columns"));
}

TEST_F(MakeCsv, SelectsColumns) {
  const std::string content = "a,b,c\n1,2,x\n3,4,y\n";
  const auto expected = ElementsAre("{'a': [1, 3], 'c': [\"x\", \"y\"]}");
  EXPECT_THAT(read(content, {.select_columns = {"c", "a"}}), expected);
  EXPECT_THAT(read(content, {.select_columns = {0, "c"}}), expected);
  EXPECT_THAT(read(content, {.column_defaults = {int64, "-"}, .select_columns = {0, 2}}), expected);
  EXPECT_THAT(read(content, {.label_name = "c", .select_columns = {"c", "a"}}),
              ElementsAre("({'a': [1, 3]}, [\"x\", \"y\"])"));
  EXPECT_THAT(error(content, {.select_columns = {"d"}}),
              HasSubstr("'d', but the columns are 'a', 'b', 'c'"));
  EXPECT_THAT(error(content, {.select_columns = {3}}), HasSubstr("select_columns has 3"));
  EXPECT_THAT(error(content, {.select_columns = {-1}}), HasSubstr("select_columns has -1"));
  EXPECT_THAT(error(content, {.select_columns = {"a", 0}}), HasSubstr("'a' twice"));
  EXPECT_THAT(error(content, {.label_name = "b", .select_columns = {"a"}}),
              HasSubstr("label_name is 'b', but the columns are 'a'"));
}

TEST_F(MakeCsv, NamesMayBeGiven) {
  EXPECT_THAT(read("1,x\n2,y\n", {.column_names = {"n", "s"}, .header = false}),
              ElementsAre("{'n': [1, 2], 's': [\"x\", \"y\"]}"));
  EXPECT_THAT(read("a,b\n1,x\n", {.column_names = {"n", "s"}}),
              ElementsAre("{'n': [1], 's': [\"x\"]}"));
  EXPECT_THAT(error("1,x\n", {.header = false}), HasSubstr("need column_names"));
  EXPECT_THAT(error("a,b,a\n1,2,3\n"), HasSubstr("two columns are called 'a'"));
  EXPECT_THAT(error("1,2\n", {.column_names = {"a", "a"}, .header = false}),
              HasSubstr("two columns are called 'a'"));
  EXPECT_THAT(error("1,2\n", {.column_names = {"a"}, .header = false}),
              AllOf(HasSubstr("a.csv', line 1"), HasSubstr("2 fields where 1 are expected")));
}

TEST_F(MakeCsv, QuotesDelimitersAndMarks) {
  EXPECT_THAT(read("\xef\xbb\xbf\"n, all\",s\n1,\"x\ny\"\"\"\n"),
              ElementsAre("{'n, all': [1], 's': [\"x\\ny\\\"\"]}"));
  EXPECT_THAT(read("a\tb\r\n1\tx\"\r\n", {.field_delim = '\t', .use_quote_delim = false}),
              ElementsAre("{'a': [1], 'b': [\"x\\\"\"]}"));
}

TEST_F(MakeCsv, RowsThatDoNotFitAreErrorsOrLeftOut) {
  const std::string content = "a,b\n1,x\n2\n3,y\n\n4,z\n";
  EXPECT_THAT(error(content), AllOf(HasSubstr("make_csv_dataset: inferring the types of columns"),
                                    HasSubstr("a.csv', line 3: it has 1 field where 2")));
  EXPECT_THAT(error(content, {.num_rows_for_inference = 1}), HasSubstr("a.csv', line 3: "));
  for (const int64_t rows : {1, 100}) {
    EXPECT_THAT(read(content, {.num_rows_for_inference = rows, .ignore_errors = true}),
                ElementsAre("{'a': [1, 3], 'b': [\"x\", \"y\"]}", "{'a': [4], 'b': [\"z\"]}"));
  }
  // A column whose later values have another type.
  EXPECT_THAT(error("a,b\n1,1\n2,2\n3,x\n", {.num_rows_for_inference = 2}),
              AllOf(HasSubstr("a.csv', line 4: field 2 ('b') is no int32: 'x'"),
                    HasSubstr("first 2 rows"), HasSubstr("column_defaults")));
  EXPECT_THAT(error("a,b\n\"1,1\n"), HasSubstr("line 2: the quotation mark"));
}

TEST_F(MakeCsv, FilesHaveOneHeader) {
  write("a.csv", "a,b\n1,2\n");
  write("b.csv", "a,c\n1,2\n");
  const auto error = [&](const std::string& pattern) {
    return thrown<InvalidArgumentError>([&] { make_csv_dataset(path(pattern), 2); });
  };
  EXPECT_THAT(error("*.csv"), AllOf(HasSubstr("b.csv' differs from that of"), HasSubstr("a.csv'"),
                                    HasSubstr("column 2 is 'c', not 'b'")));
  write("b.csv", "a\n1\n");
  EXPECT_THAT(error("*.csv"), HasSubstr("it has 1 columns, not 2"));
  write("b.csv", "");
  EXPECT_THAT(thrown<DataLossError>([&] { make_csv_dataset(path("*.csv"), 2); }),
              AllOf(HasSubstr("b.csv' has no line"), HasSubstr(".header")));
  EXPECT_THAT(thrown<NotFoundError>([&] { make_csv_dataset(path("*.txt"), 2); }),
              HasSubstr("*.txt"));
  EXPECT_THROW(make_csv_dataset(path("a.csv"), 0), InvalidArgumentError);
  EXPECT_THROW(make_csv_dataset(path("a.csv"), 2, {.compression_type = "ZIP"}),
               InvalidArgumentError);
  EXPECT_THROW(make_csv_dataset(path("a.csv"), 2, {.num_parallel_reads = 0}), InvalidArgumentError);
}

TEST_F(MakeCsv, FilesMayBeCompressed) {
  // "a,b\n1,x\n2,y\n".
  write("a.gz",
        std::string_view(
            "\037\213\010\000\000\000\000\000\002\003\113\324\111\342\062\324\251\340\062\322"
            "\251\344\002\000\302\226\176\235\014\000\000\000",
            32));
  EXPECT_THAT(texts(make_csv_dataset(path("a.gz"), 2, once({.compression_type = "GZIP"}))),
              ElementsAre("{'a': [1, 2], 'b': [\"x\", \"y\"]}"));
}

// Files of 40 rows whose column "n" counts over all of them.
struct MakeCsvFromFiles : MakeCsv {
  MakeCsvFromFiles() {
    for (int file = 0; file < 4; ++file) {
      std::string content = "n,s\n";
      for (int row = 0; row < 40; ++row) {
        content += internal::str(40 * file + row, ",s", row, "\n");
      }
      write(internal::str(file, ".csv"), content);
    }
    for (int32_t n = 0; n < 160; ++n) all.push_back(n);
  }
  static std::vector<int32_t> numbers(const Dataset& dataset) {
    std::vector<int32_t> found;
    for (const Structure& batch : dataset) {
      const Tensor values = batch["n"].tensor();
      for (int64_t i = 0; i < values.numel(); ++i) found.push_back(values[i].item<int32_t>());
    }
    return found;
  }
  Dataset make(int64_t batch_size, const MakeCsvDatasetOptions& options) const {
    return make_csv_dataset(path("*.csv"), batch_size, options);
  }
  std::vector<int32_t> all;
};

TEST_F(MakeCsvFromFiles, PassesAreShuffledAndRepeated) {
  EXPECT_EQ(numbers(make(7, once())), all);
  const Dataset two = make(10, {.num_epochs = 2, .shuffle_seed = 1});
  const auto found = numbers(two);
  ASSERT_EQ(found.size(), 320u);
  const std::vector<int32_t> first(found.begin(), found.begin() + 160);
  const std::vector<int32_t> second(found.begin() + 160, found.end());
  EXPECT_THAT(first, UnorderedElementsAreArray(all));
  EXPECT_THAT(second, UnorderedElementsAreArray(all));
  EXPECT_NE(first, second);
  EXPECT_NE(first, all);
  EXPECT_EQ(numbers(make(10, {.num_epochs = 2, .shuffle_seed = 1})), found);
  // A dataset without end has no smaller batch.
  const Dataset endless = make(7, {});
  EXPECT_EQ(endless.cardinality(), kInfiniteCardinality);
  EXPECT_THAT(numbers(endless.take(23)), testing::SizeIs(161));
  EXPECT_THAT(internal::str(endless.element_spec()), HasSubstr("shape=(7,)"));
}

TEST_F(MakeCsvFromFiles, FilesAreReadInTurn) {
  std::vector<int32_t> in_turn;
  for (const int32_t first : {0, 80}) {
    for (int32_t row = 0; row < 40; ++row) {
      in_turn.push_back(first + row);
      in_turn.push_back(first + 40 + row);
    }
  }
  for (const bool ignore : {false, true}) {
    EXPECT_EQ(numbers(make(7, once({.num_parallel_reads = 2, .ignore_errors = ignore}))), in_turn);
  }
  for (const int64_t reads : {int64_t{3}, AUTOTUNE}) {
    EXPECT_THAT(numbers(make(7, once({.num_parallel_reads = reads, .sloppy = true}))),
                UnorderedElementsAreArray(all));
  }
}

TEST_F(MakeCsvFromFiles, ResumesAtEveryBatch) {
  for (const bool ignore : {false, true}) {
    for (const int64_t reads : {1, 3}) {
      const MakeCsvDatasetOptions options = {.num_epochs = 2,
                                             .shuffle_buffer_size = 30,
                                             .shuffle_seed = 4,
                                             .num_parallel_reads = reads,
                                             .ignore_errors = ignore};
      const auto expected = texts(make(16, options));
      const Dataset dataset = make(16, options);
      auto iterator = dataset.iterator();
      for (size_t position = 0; position <= expected.size(); ++position) {
        auto restored = dataset.iterator();
        restored.restore(IteratorState::parse(iterator.state().serialize()));
        EXPECT_EQ(texts(restored),
                  std::vector<std::string>(expected.begin() + position, expected.end()));
        iterator.next();
      }
    }
  }
}

TEST_F(MakeCsvFromFiles, WorkersDivideFilesOrRows) {
  for (const AutoShardPolicy policy : {AutoShardPolicy::FILE, AutoShardPolicy::DATA}) {
    for (const MakeCsvDatasetOptions& options :
         {once(), once({.num_parallel_reads = 2}),
          MakeCsvDatasetOptions{.num_epochs = 1, .shuffle_seed = 1}}) {
      Options sharding;
      sharding.experimental_distribute.auto_shard_policy = policy;
      const Dataset dataset = make(8, options).with_options(sharding);
      std::vector<int32_t> found;
      for (int64_t worker = 0; worker < 2; ++worker) {
        const auto part = numbers(auto_shard(dataset, {.num_workers = 2, .index = worker}));
        EXPECT_EQ(part.size(), 80u);
        found.insert(found.end(), part.begin(), part.end());
      }
      EXPECT_THAT(found, UnorderedElementsAreArray(all));
    }
  }
}

TEST_F(MakeCsvFromFiles, ExplainsItself) {
  const std::string text = make(8, {.label_name = "n", .shuffle_seed = 1}).explain();
  for (const char* part :
       {"prefetch", "batch(batch_size=8, drop_remainder=true)", "repeat(count=-1)",
        "shuffle(buffer_size=10000, seed=1)",
        "CsvDataset(columns=int32=0 string='', column_names='n' 's', header=true, label_name='n')",
        "list_files"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

}  // namespace
}  // namespace cohort::data

#include "cohort/data/files/csv_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/data/test_util.h"
#include "cohort/data/testing_files.h"

namespace cohort::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct CsvRows : FilesTest {
  // Each element, or the text of its error after the file's name.
  std::vector<std::string> read(const std::string& content, std::vector<CsvColumn> columns,
                                const CsvOptions& options = {}) {
    const auto file = write("a.csv", content);
    auto iterator = CsvDataset(file, std::move(columns), options).iterator();
    std::vector<std::string> all;
    while (true) {
      try {
        const auto element = iterator.next();
        if (!element) return all;
        all.push_back(internal::str(*element));
      } catch (const InvalidArgumentError& error) {
        const std::string text = error.what();
        EXPECT_EQ(text.find("'" + file + "', "), 0u) << text;
        all.push_back(text.substr(file.size() + 4));
      }
    }
  }
};

const CsvColumn kInt = CsvColumn::ints(), kString = CsvColumn::strings();

TEST_F(CsvRows, ColumnsAreGivenByTheirDefaultsOrDtypes) {
  EXPECT_THAT(read("1,,x,2.5\n,2,,3\n", {0, 0.5, "none", float64}),
              ElementsAre("(1, 0.5, \"x\", 2.5)", "(0, 2.0, \"none\", 3.0)"));
  EXPECT_EQ(CsvColumn(0.).spec().dtype(), float32);
  EXPECT_EQ(CsvColumn(int64_t{0}).spec().dtype(), int64);
  EXPECT_THROW(CsvColumn{boolean}, InvalidArgumentError);
}

TEST_F(CsvRows, TypedColumns) {
  const CsvDataset dataset(
      write("a.csv", "1,2,0.5,-1e3,x\n"),
      {CsvColumn::int32s(), kInt, CsvColumn::floats(), CsvColumn::doubles(), kString});
  const Structure element = dataset.iterator().get_next();
  EXPECT_FALSE(dataset.element_spec().first_mismatch(element)) << element;
  EXPECT_EQ(internal::str(element), "(1, 2, 0.5, -1000.0, \"x\")");
  EXPECT_EQ(internal::str(dataset.element_spec().members()[0]),
            "TensorSpec(shape=(), dtype=int32)");
  EXPECT_THAT(dataset.explain(),
              HasSubstr("CsvDataset(columns=int32 int64 float32 float64 string)"));
}

// As tf.data.experimental.CsvDataset 2.15 reads them.
TEST_F(CsvRows, RecordsAndFields) {
  EXPECT_THAT(read("", {kInt}), IsEmpty());
  EXPECT_THAT(read("1,2\r\n3,4", {kInt, kInt}), ElementsAre("(1, 2)", "(3, 4)"));
  EXPECT_THAT(read("1,\"a \"\"q\"\" b\"\n3,\"x\ny\"", {kInt, kString}),
              ElementsAre("(1, \"a \\\"q\\\" b\")", "(3, \"x\\ny\")"));
  EXPECT_THAT(read("\"1\",\" 2 \"\n", {kInt, kInt}), ElementsAre("(1, 2)"));
  EXPECT_THAT(read("a,b\n1,2\n", {kInt, kInt}, {.header = true}), ElementsAre("(1, 2)"));
  EXPECT_THAT(read("x\ty,z\n", {kString, kString}, {.field_delim = '\t'}),
              ElementsAre("(\"x\", \"y,z\")"));
  EXPECT_THAT(read("a \"b\",c\n", {kString, kString}, {.use_quote_delim = false}),
              ElementsAre("(\"a \\\"b\\\"\", \"c\")"));
}

// A header alone is a file without records; that it lacks even the header says that it was cut off,
// which is an error in TensorFlow, too.
TEST_F(CsvRows, AFileWithAHeaderHasALine) {
  for (const char* content : {"a,b", "a,b\n", "a,b\r\n", "\n",
                              "\xef\xbb\xbf"
                              "a,b\n"}) {
    EXPECT_THAT(read(content, {kInt, kInt}, {.header = true}), IsEmpty()) << content;
  }
  EXPECT_THAT(read("", {kInt}), IsEmpty());
  EXPECT_THAT(read("\xef\xbb\xbf", {kInt}), IsEmpty());
  for (const char* content : {"", "\xef\xbb\xbf"}) {
    const auto file = write("a.csv", content);
    for (const int64_t buffer : {1, 1 << 20}) {
      const CsvDataset dataset(file, {kInt}, {.header = true, .files = {.buffer_size = buffer}});
      EXPECT_THAT(thrown<DataLossError>([&] { texts(dataset); }),
                  AllOf(HasSubstr(file), HasSubstr("no line"), HasSubstr(".header")));
    }
    // The file after it is read all the same, where damaged ones are passed over.
    const CsvDataset both({file, write("b.csv", "h\n7\n")}, {kInt},
                          {.header = true, .files = {.ignore_errors = true}});
    EXPECT_THAT(texts(both), ElementsAre("(7,)"));
  }
}

TEST_F(CsvRows, AByteOrderMarkIsNoPartOfTheFirstField) {
  const std::string mark = "\xef\xbb\xbf";
  for (const int64_t buffer : {1, 1 << 20}) {
    const CsvOptions options = {.files = {.buffer_size = buffer}};
    EXPECT_THAT(read(mark + "1,x\n2," + mark + "\n", {kInt, kString}, options),
                ElementsAre("(1, \"x\")", "(2, \"" + mark + "\")"));
    EXPECT_THAT(read(mark + "\"a,b\",1\n", {kString, kInt}, options), ElementsAre("(\"a,b\", 1)"));
    EXPECT_THAT(read("\xef\xbb", {kString}, options), ElementsAre("(\"\xef\xbb\",)"));
    const CsvOptions header = {.header = true, .files = {.buffer_size = buffer}};
    EXPECT_THAT(read(mark + "h\n1\nx\n", {kInt}, header),
                ElementsAre("(1,)", "line 3: field 1 is no int64: 'x'"));
  }
  const CsvDataset dataset(write("b.csv", mark + "1\n2\n3\n"), {kInt},
                           {.files = {.buffer_size = 1}});
  auto iterator = dataset.iterator();
  iterator.next();
  auto restored = dataset.iterator();
  restored.restore(IteratorState::parse(iterator.state().serialize()));
  EXPECT_THAT(texts(restored), ElementsAre("(2,)", "(3,)"));
}

TEST_F(CsvRows, DefaultsStandForEmptyFields) {
  EXPECT_THAT(read("1,\n,6\n\"\",x\n", {CsvColumn::ints(7), CsvColumn::strings("d")}),
              ElementsAre("(1, \"d\")", "(7, \"6\")", "(7, \"x\")"));
  EXPECT_THAT(read("NA,2\n", {CsvColumn::ints(5), kInt}, {.na_value = "NA"}),
              ElementsAre("(5, 2)"));
  EXPECT_THAT(read("\n", {CsvColumn::floats(0.5f)}), ElementsAre("(0.5,)"));
}

// As strtod has it.
TEST_F(CsvRows, NumbersMayHaveAPlus) {
  EXPECT_THAT(read("+2.5,+1e3,+7\n", {CsvColumn::floats(), CsvColumn::doubles(), kInt}),
              ElementsAre("(2.5, 1000.0, 7)"));
  for (const char* field : {"+", "++1", "+-1", "+ 1", "1+"}) {
    for (const CsvColumn& column : {CsvColumn::floats(), kInt}) {
      const auto found = read(std::string(field) + "\n", {column});
      ASSERT_EQ(found.size(), 1u);
      EXPECT_THAT(found[0], HasSubstr("'" + std::string(field) + "'"));
    }
  }
}

TEST_F(CsvRows, SelectedAndNamedColumns) {
  EXPECT_THAT(read("a,b,c,d\n1,2,3,4\n", {kInt, kInt}, {.header = true, .select_cols = {0, 2}}),
              ElementsAre("(1, 3)"));
  const CsvDataset named(write("a", "1,x\n2,y\n"), {kInt, kString}, {.column_names = {"n", "s"}});
  const Structure batch = named.batch(2).iterator().get_next();
  EXPECT_THAT(batch["s"].strings().to_vector(), ElementsAre("x", "y"));
  EXPECT_EQ(batch["n"].tensor().sum().item<int64_t>(), 3);
}

TEST_F(CsvRows, ExcludedColumns) {
  EXPECT_THAT(read("1,2,3,4\n5,6,7,8\n", {kInt, kInt}, {.exclude_cols = {0, 2}}),
              ElementsAre("(2, 4)", "(6, 8)"));
  // Records have these columns and the others: no more, unlike with select_cols.
  EXPECT_THAT(read("1,2,3\n1,2\n4,x,6\n1,2,3,4\n", {kInt, kInt}, {.exclude_cols = {1}}),
              ElementsAre("(1, 3)", "line 2: it has 2 fields where 3 are expected", "(4, 6)",
                          "line 4: it has 4 fields where 3 are expected"));
  EXPECT_THAT(read("1,y\n", {kInt}, {.exclude_cols = {0}}),
              ElementsAre("line 1: field 2 is no int64: 'y'"));
  EXPECT_THAT(CsvDataset("a", {kInt}, {.exclude_cols = {0, 2}}).explain(),
              HasSubstr("exclude_cols=0 2"));
}

TEST_F(CsvRows, NamesOfColumnsArePartOfTheGraph) {
  const auto file = write("a.csv", "1,2\n3,4\n");
  const auto dataset = [&](const std::string& first, const std::string& second) {
    return CsvDataset(file, {kInt, kInt}, {.column_names = {first, second}});
  };
  EXPECT_THAT(dataset("a", "b").explain(), HasSubstr("column_names='a' 'b'"));
  auto iterator = dataset("a", "b").iterator();
  iterator.next();
  auto other = dataset("b", "a").iterator();
  EXPECT_THROW(other.restore(iterator.state()), InvalidArgumentError);
}

TEST_F(CsvRows, ErrorsNameLineAndFieldAndCostOneRecord) {
  EXPECT_THAT(read("1,2\nx,4\n5,6\n", {kInt, kInt}),
              ElementsAre("(1, 2)", "line 2: field 1 is no int64: 'x'", "(5, 6)"));
  EXPECT_THAT(read("\"a\nb\",1\nc,\n", {kString, kInt}),
              ElementsAre("(\"a\\nb\", 1)", "line 3: field 2 is required, but empty"));
  EXPECT_THAT(read("h\n1\n2,3\n", {kInt}, {.header = true}),
              ElementsAre("(1,)", "line 3: it has 2 fields where 1 are expected"));
  EXPECT_THAT(read("1\n2,3\n", {kInt, kInt}),
              ElementsAre("line 1: it has 1 field where 2 are expected", "(2, 3)"));
  EXPECT_THAT(read("1,2\n3\n", {kInt}, {.select_cols = {1}}),
              ElementsAre("(2,)", "line 2: it has 1 field where at least 2 are expected"));
  EXPECT_THAT(
      read("a\"b\nc\n", {kString}),
      ElementsAre("line 1: field 1 has a quotation mark inside, but does not begin with one",
                  "(\"c\",)"));
  EXPECT_THAT(read("99999999999\n", {CsvColumn::int32s()}),
              ElementsAre("line 1: field 1 is no int32: '99999999999'"));
}

TEST_F(CsvRows, ChecksItsOptions) {
  const auto error = [](std::vector<CsvColumn> columns, const CsvOptions& options) {
    return thrown<InvalidArgumentError>([&] { CsvDataset("a", columns, options); });
  };
  EXPECT_THAT(error({}, {}), HasSubstr("no columns"));
  EXPECT_THAT(error({kInt}, {.select_cols = {1, 2}}), HasSubstr("select_cols has 2 entries"));
  EXPECT_THAT(error({kInt, kInt}, {.select_cols = {1, 1}}), HasSubstr("select_cols[1] is 1"));
  EXPECT_THAT(error({kInt}, {.select_cols = {-1}}), HasSubstr("select_cols[0] is -1"));
  EXPECT_THAT(error({kInt}, {.exclude_cols = {1, 0}}), HasSubstr("exclude_cols[1] is 0"));
  EXPECT_THAT(error({kInt}, {.exclude_cols = {2}}), HasSubstr("exclude_cols has 2"));
  EXPECT_THAT(error({kInt}, {.select_cols = {0}, .exclude_cols = {1}}), HasSubstr("both given"));
  EXPECT_THAT(error({kInt}, {.column_names = {"a", "b"}}), HasSubstr("column_names"));
  EXPECT_THAT(error({kInt}, {.field_delim = '"'}), HasSubstr("field_delim"));
}

TEST_F(CsvRows, BlocksAndElementsAreTheSame) {
  std::string content;
  for (int i = 0; i < 100; ++i) content += internal::str(i, ",\"text ", i * i, "\"\n");
  const auto first = write("a", content), second = write("b", "7,x\n");
  for (const int64_t buffer : {1, 1 << 20}) {
    const RecordDatasetOptions files = {.buffer_size = buffer};
    const CsvDataset dataset({first, second}, {kInt, kString}, {.files = files});
    EXPECT_EQ(texts(dataset.batch(7).unbatch()), texts(dataset));
    EXPECT_EQ(texts(dataset).size(), 101u);
  }
  const CsvDataset in_turn({first, second}, {kInt, kString}, {.files = {.num_parallel_reads = 2}});
  EXPECT_EQ(texts(in_turn.batch(7).unbatch()), texts(in_turn));
}

TEST_F(CsvRows, ResumesAtEveryPosition) {
  const auto file = write("a", "h\n1\n\"\n2\"\n\nx\n3\n");
  const CsvDataset dataset({file, file}, {CsvColumn::strings("-")},
                           {.header = true, .files = {.buffer_size = 1}});
  const auto all = texts(dataset);
  ASSERT_EQ(all.size(), 10u);
  auto iterator = dataset.iterator();
  for (size_t position = 0; position <= all.size(); ++position) {
    auto restored = dataset.iterator();
    restored.restore(IteratorState::parse(iterator.state().serialize()));
    EXPECT_EQ(texts(restored), std::vector<std::string>(all.begin() + position, all.end()));
    iterator.next();
  }
}

}  // namespace
}  // namespace cohort::data

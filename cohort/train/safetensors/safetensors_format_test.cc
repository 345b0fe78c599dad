#include "cohort/train/safetensors/safetensors_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cohort/core/error.h"
#include "cohort/core/files/simulated_file_system.h"
#include "cohort/train/safetensors/safetensors_dtype.h"
#include "cohort/train/safetensors/safetensors_file.h"

namespace cohort::internal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <class ErrorType>
void expect_refused(std::string_view json, uint64_t data_bytes, const std::string& text) {
  try {
    parse_safetensors_header(json, data_bytes, "dir/m.safetensors");
    ADD_FAILURE() << "taken: " << json;
  } catch (const ErrorType& error) {
    EXPECT_THAT(error.what(), HasSubstr("dir/m.safetensors")) << json;
    EXPECT_THAT(error.what(), HasSubstr(text)) << json;
  }
}

void expect_damaged(std::string_view json, uint64_t data_bytes, const std::string& text) {
  expect_refused<DataLossError>(json, data_bytes, text);
}

std::string tensor(const std::string& name, const std::string& shape, const std::string& places,
                   const std::string& dtype = "U8") {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" +
         places + "}";
}

TEST(SafetensorsFormat, ParsesWhatItFormats) {
  SafetensorsHeader header;
  header.tensors["w"] = {.type = BundleType::kFloat32, .shape = {2, 3}};
  header.tensors["a \"b\"/\n"] = {.type = BundleType::kBfloat16, .shape = {3}};
  header.tensors["empty"] = {.type = BundleType::kInt64, .shape = {0, 7}};
  header.tensors["step"] = {.type = BundleType::kUint64, .shape = {}};
  header.metadata = {{"format", "pt"}, {"by", "ünï"}};
  place_tensors(header);
  EXPECT_EQ(data_bytes(header), 24u + 6 + 8);

  const std::string bytes = format_safetensors_header(header);
  EXPECT_EQ(bytes.size() % 8, 0u);
  EXPECT_EQ(parse_safetensors_header(bytes.substr(8), 38, "f"), header);
}

TEST(SafetensorsFormat, EveryTensorBeginsAtAMultipleOfItsElements) {
  SafetensorsHeader header;
  header.tensors["a"] = {.type = BundleType::kBool, .shape = {3}};
  header.tensors["b"] = {.type = BundleType::kFloat16, .shape = {1}};
  header.tensors["c"] = {.type = BundleType::kFloat64, .shape = {1}};
  header.tensors["d"] = {.type = BundleType::kInt32, .shape = {1}};
  place_tensors(header);
  EXPECT_EQ(header.tensors["c"].begin, 0u);
  EXPECT_EQ(header.tensors["d"].begin, 8u);
  EXPECT_EQ(header.tensors["b"].begin, 12u);
  EXPECT_EQ(header.tensors["a"].begin, 14u);
}

TEST(SafetensorsFormat, RefusesToFormatWhatTheFormatCannotHold) {
  SafetensorsHeader strings;
  strings.tensors["words"] = {.type = BundleType::kString, .shape = {1}};
  EXPECT_THROW(place_tensors(strings), InvalidArgumentError);
  EXPECT_THROW(format_safetensors_header(strings), InvalidArgumentError);
  EXPECT_FALSE(safetensors_can_hold(BundleType::kString));

  SafetensorsHeader reserved;
  reserved.tensors["__metadata__"] = {.shape = {0}};
  EXPECT_THROW(format_safetensors_header(reserved), InvalidArgumentError);

  SafetensorsHeader not_utf8;
  not_utf8.tensors["\xff"] = {.shape = {0}};
  EXPECT_THROW(format_safetensors_header(not_utf8), InvalidArgumentError);

  SafetensorsHeader too_long;
  too_long.metadata["key"] = std::string(kMostSafetensorsHeaderBytes, 'x');
  EXPECT_THROW(format_safetensors_header(too_long), InvalidArgumentError);
}

TEST(SafetensorsFormat, TakesFieldsInAnyOrderAndTensorsInAnyOrder) {
  const SafetensorsHeader header = parse_safetensors_header(
      R"({ "b": {"data_offsets":[4,8], "shape":[1], "dtype":"F32"}, "__metadata__" : {},
           )" +
          tensor("a", "[2]", "[0,4]", "F16") + "}  ",
      8, "f");
  EXPECT_EQ(header.tensors.at("a").type, BundleType::kFloat16);
  EXPECT_EQ(header.tensors.at("b").begin, 4u);
  EXPECT_THAT(header.tensors.at("b").shape, ElementsAre(1));
}

TEST(SafetensorsFormat, JsonThatIsNone) {
  expect_damaged("", 0, "begin with '{'");
  expect_damaged(" {}", 0, "begin with '{'");
  expect_damaged("[]", 0, "begin with '{'");
  expect_damaged("{", 0, "no JSON at byte 1");
  expect_damaged("{}{}", 0, "no JSON at byte 2");
  expect_damaged(std::string_view("{}\0 ", 4), 0, "no JSON at byte 2");
  expect_damaged("{\"\xff\":1}", 0, "no JSON at byte 2");
  expect_damaged("{" + tensor("a", "[1e999]", "[0,1]") + "}", 1, "no JSON");
  expect_damaged(std::string(1000, '{'), 0, "no JSON");
}

TEST(SafetensorsFormat, JsonOfAnotherForm) {
  expect_damaged(R"({"a":1})", 0, "tensor 'a': a number");
  expect_damaged(R"({"a":null})", 0, "tensor 'a': a null");
  expect_damaged(R"({"a":[1]})", 0, "tensor 'a': a list");
  expect_damaged(R"({"a":{}})", 0, "tensor 'a': lacks");
  expect_damaged(R"({"a":{"dtype":"U8","shape":[0]}})", 0, "tensor 'a': lacks");
  expect_damaged(R"({"a":{"dtype":1}})", 0, "tensor 'a': a number");
  expect_damaged(R"({"a":{"dtype":{}}})", 0, "tensor 'a': an object");
  expect_damaged(R"({"a":{"shape":"x"}})", 0, "tensor 'a': a string");
  expect_damaged(R"({"a":{"shape":true}})", 0, "tensor 'a': a boolean");
  expect_damaged(R"({"a":{"strides":[1]}})", 0, "'strides'");
  expect_damaged(R"({"a":{"shape":[[1]]}})", 0, "tensor 'a': a list");
  expect_damaged("{" + tensor("a", "[1]", "[0]") + "}", 1, "two numbers");
  expect_damaged("{" + tensor("a", "[1]", "[0,1,2]") + "}", 1, "two numbers");
  expect_damaged("{" + tensor("a", "[1]", "[]") + "}", 1, "two numbers");
  expect_damaged(R"({"__metadata__":{"a":1}})", 0, "metadata: a number");
  expect_damaged(R"({"__metadata__":{"a":{}}})", 0, "metadata: an object");
  expect_damaged(R"({"__metadata__":"a"})", 0, "metadata: a string");
}

TEST(SafetensorsFormat, NamesGivenTwice) {
  const std::string a = tensor("a", "[1]", "[0,1]");
  expect_damaged("{" + a + "," + a + "}", 1, "tensor 'a': is there twice");
  expect_damaged(R"({"a":{"dtype":"U8","dtype":"U8"}})", 0, "two fields 'dtype'");
  expect_damaged(R"({"__metadata__":{},"__metadata__":{}})", 0, "two metadata");
  expect_damaged(R"({"__metadata__":{"k":"1","k":"2"}})", 0, "two values for 'k'");
}

TEST(SafetensorsFormat, NumbersThatCannotBe) {
  expect_damaged("{" + tensor("a", "[-1]", "[0,1]") + "}", 1, "tensor 'a': a negative number");
  expect_damaged("{" + tensor("a", "[1.5]", "[0,1]") + "}", 1, "tensor 'a': a number that is");
  expect_damaged("{" + tensor("a", "[9223372036854775808]", "[0,1]") + "}", 1, "a dimension of");
  expect_damaged("{" + tensor("a", "[18446744073709551616]", "[0,1]") + "}", 1, "too large");
  expect_damaged("{" + tensor("a", "[4294967296,4294967296]", "[0,0]") + "}", 0, "more elements");
  expect_damaged("{" + tensor("a", "[4611686018427387904]", "[0,0]", "F32") + "}", 0, "cannot be");
  std::string ones = "1";
  for (int i = 0; i < 254; ++i) ones += ",1";
  expect_damaged("{" + tensor("a", "[" + ones + "]", "[0,1]") + "}", 1, "too many dimensions");
}

TEST(SafetensorsFormat, PlacesThatCannotBe) {
  const std::string a = tensor("a", "[2]", "[0,2]") + ",";
  expect_damaged("{" + a + tensor("b", "[2]", "[1,3]") + "}", 3, "tensor 'b': its data_offsets 1");
  expect_damaged("{" + a + tensor("b", "[2]", "[3,5]") + "}", 5, "gap");
  expect_damaged("{" + a + tensor("b", "[2]", "[2,4]") + "}", 3, "tensor 'b'");
  expect_damaged("{" + a + tensor("b", "[2]", "[2,1]") + "}", 3, "tensor 'b'");
  expect_damaged("{" + a + tensor("b", "[2]", "[2,4]") + "}", 5, "has 5 bytes of data");
  expect_damaged("{" + a + tensor("b", "[3]", "[2,4]") + "}", 4, "3 elements of uint8");
  expect_damaged("{" + tensor("b", "[1]", "[0,3]", "F32") + "}", 3, "1 elements of float32");
  expect_damaged("{" + tensor("b", "[1]", "[18446744073709551615,3]") + "}", 3, "gap");
  expect_damaged("{}", 1, "has 1 bytes of data");
}

TEST(SafetensorsFormat, Dtypes) {
  expect_refused<UnimplementedError>("{" + tensor("a", "[1]", "[0,1]", "F8_E4M3") + "}", 1,
                                     "tensor 'a': dtype 'F8_E4M3'");
  expect_damaged("{" + tensor("a", "[1]", "[0,1]", "f32") + "}", 1, "tensor 'a': dtype 'f32'");
}

TEST(SafetensorsFormat, AHostileNameMakesNoHostileMessage) {
  try {
    parse_safetensors_header("{\"" + std::string(100'000, 'x') + "\":1}", 0, "f");
    FAIL();
  } catch (const DataLossError& error) {
    EXPECT_LT(std::string_view(error.what()).size(), 400u);
  }
}

struct SafetensorsFile : testing::Test {
  SafetensorsFile() {
    header.tensors["a"] = {.type = BundleType::kUint8, .shape = {2}};
    header.tensors["b"] = {.type = BundleType::kInt16, .shape = {1}};
    place_tensors(header);
  }

  void write(FileSystem& to, std::string_view first = "12") {
    SafetensorsWriter file(to, "m", header);
    file.append(first);
    file.append("3");
    file.append("4");
    file.finish();
  }
  static std::string read(FileSystem& from) {
    const SafetensorsReader file(from.open("m"), "m");
    std::string bytes(4, '\0');
    file.read(file.header().tensors.at("b"), bytes.data());
    file.read(file.header().tensors.at("a"), bytes.data() + 2);
    return bytes;
  }

  SimulatedFileSystem files;
  SafetensorsHeader header;
};

TEST_F(SafetensorsFile, IsReadAsItWasWritten) {
  write(files);
  EXPECT_EQ(read(files), "1234");
  EXPECT_EQ(SafetensorsReader(files.open("m"), "m").header(), header);
  EXPECT_THAT(files.file_paths(), ElementsAre("/m"));
}

TEST_F(SafetensorsFile, IsTheOldOneOrTheNewOneWheneverThePowerGoes) {
  for (int64_t call = 1;; ++call) {
    SimulatedFileSystem disk;
    write(disk, "12");
    disk.set_faults({.kill_at = disk.calls() + call});
    bool killed = false;
    try {
      write(disk, "56");
    } catch (const SimulatedKill&) {
      killed = true;
    }
    const std::string found = read(*disk.after_power_cut());
    if (!killed) {
      EXPECT_EQ(found, "5634");
      EXPECT_GT(call, 5);
      break;
    }
    EXPECT_THAT(found, testing::AnyOf("1234", "5634"));
  }
}

TEST_F(SafetensorsFile, GivenUpLeavesNothing) {
  {
    SafetensorsWriter file(files, "m", header);
    file.append("12");
  }
  EXPECT_THAT(files.file_paths(), testing::IsEmpty());
  SafetensorsWriter file(files, "m", header);
  file.append("12");
  EXPECT_THROW(file.finish(), InternalError);
  EXPECT_THROW(file.append("345"), InternalError);
}

TEST_F(SafetensorsFile, AFullDiskIsAnErrorThatLeavesNothing) {
  files.set_capacity(100);
  EXPECT_THROW(write(files), ResourceExhaustedError);
  EXPECT_THAT(files.file_paths(), testing::IsEmpty());
}

TEST_F(SafetensorsFile, EveryTruncationIsDataLoss) {
  write(files);
  const std::string whole = files.content("m");
  for (size_t length = 0; length < whole.size(); ++length) {
    files.set_content("m", std::string_view(whole).substr(0, length));
    EXPECT_THROW(read(files), DataLossError) << length;
  }
  files.set_content("m", whole + "x");
  EXPECT_THROW(read(files), DataLossError);
  files.set_content("m", std::string(7, '\xff') + "\x7f" + whole);
  EXPECT_THROW(read(files), DataLossError) << "a length that nothing can have";
}

}  // namespace
}  // namespace cohort::internal

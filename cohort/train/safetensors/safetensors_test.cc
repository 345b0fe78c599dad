#include "cohort/train/safetensors/safetensors.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "cohort/core/error.h"

namespace cohort::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// What version 0.8.0 of the Python package writes of {"w": arange(6, float32) as [2, 3], "ok":
// [True, False], "n": int64 -7, "empty": float16 of [0, 4]}, metadata {"format": "np"}.
constexpr std::string_view kReferenceFile =
    "08010000000000007b225f5f6d657461646174615f5f223a7b22666f726d6174223a226e70227d2c226e223a7b22"
    "6474797065223a22493634222c227368617065223a5b5d2c22646174615f6f666673657473223a5b302c385d7d2c"
    "2277223a7b226474797065223a22463332222c227368617065223a5b322c335d2c22646174615f6f666673657473"
    "223a5b382c33325d7d2c22656d707479223a7b226474797065223a22463136222c227368617065223a5b302c345d"
    "2c22646174615f6f666673657473223a5b33322c33325d7d2c226f6b223a7b226474797065223a22424f4f4c222c"
    "227368617065223a5b325d2c22646174615f6f666673657473223a5b33322c33345d7d7d202020202020f9ffffff"
    "ffffffff000000000000803f0000004000004040000080400000a0400100";

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

struct Safetensors : testing::Test {
  Safetensors() {
    std::string pattern = testing::TempDir() + "safetensors_test.XXXXXX";
    directory = ::mkdtemp(pattern.data());
    path = directory + "/m.safetensors";
  }
  ~Safetensors() override { std::filesystem::remove_all(directory); }

  void write_file(const std::string& bytes) const {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  std::string file() const {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  template <class ErrorType>
  void expect_load_error(const std::string& text) const {
    try {
      load_safetensors(path);
      ADD_FAILURE() << "no error; expected: " << text;
    } catch (const ErrorType& error) {
      EXPECT_THAT(error.what(), HasSubstr(path));
      EXPECT_THAT(error.what(), HasSubstr(text));
    }
  }

  std::string directory;
  std::string path;
};

TEST_F(Safetensors, ReadsAndWritesAFileOfTheReferenceImplementation) {
  write_file(from_hex(kReferenceFile));
  const std::map<std::string, Tensor> tensors = load_safetensors(path);
  ASSERT_EQ(tensors.size(), 4u);
  EXPECT_TRUE(at::equal(tensors.at("w"), at::arange(6, float32).view({2, 3})));
  EXPECT_TRUE(at::equal(tensors.at("ok"), at::tensor({1, 0}).to(boolean)));
  EXPECT_EQ(tensors.at("n").item<int64_t>(), -7);
  EXPECT_EQ(tensors.at("n").dim(), 0);
  EXPECT_THAT(tensors.at("empty").sizes().vec(), ElementsAre(0, 4));
  EXPECT_EQ(tensors.at("empty").scalar_type(), DType::Half);

  save_safetensors(path, tensors, {{"format", "np"}});
  EXPECT_EQ(file(), from_hex(kReferenceFile));
}

TEST_F(Safetensors, KeepsEveryDtype) {
  std::map<std::string, Tensor> tensors;
  for (const DType dtype :
       {DType::Float, DType::Double, DType::Half, DType::BFloat16, DType::Int, DType::Long,
        DType::Short, DType::Char, DType::Byte, DType::Bool, DType::ComplexFloat}) {
    tensors[internal::dtype_name(dtype)] = at::arange(3, float32).to(dtype);
  }
  save_safetensors(path, tensors);
  const std::map<std::string, Tensor> loaded = load_safetensors(path);
  ASSERT_EQ(loaded.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    EXPECT_EQ(loaded.at(name).scalar_type(), tensor.scalar_type());
    EXPECT_TRUE(at::equal(loaded.at(name), tensor)) << name;
  }
}

TEST_F(Safetensors, ViewsAreSavedAsTheyLook) {
  const Tensor grid = at::arange(6, float32).view({2, 3});
  const Tensor numbers = at::ones({2}, DType::ComplexFloat) * c10::complex<float>(1, 2);
  Tensor trained = at::ones({2}, float32);
  trained.set_requires_grad(true);
  save_safetensors(path, {{"columns", grid.t()},
                          {"conjugate", numbers.conj()},
                          {"negative", at::imag(numbers.conj())},
                          {"trained", trained}});
  const std::map<std::string, Tensor> loaded = load_safetensors(path);
  EXPECT_TRUE(at::equal(loaded.at("columns"), grid.t()));
  EXPECT_TRUE(at::equal(loaded.at("conjugate"), numbers.conj().resolve_conj()));
  EXPECT_TRUE(at::equal(loaded.at("negative"), at::ones({2}, float32) * -2));
  EXPECT_FALSE(loaded.at("trained").requires_grad());
}

TEST_F(Safetensors, RefusesWhatItCannotSaveAndLeavesTheOldFile) {
  save_safetensors(path, {{"w", at::ones({1}, float32)}});
  const std::string before = file();
  EXPECT_THROW(save_safetensors(path, {{"w", Tensor()}}), InvalidArgumentError);
  EXPECT_THROW(save_safetensors(path, {{"w", at::ones({1}, DType::ComplexDouble)}}),
               InvalidArgumentError);
  EXPECT_THROW(save_safetensors(path, {{"w", at::ones({2, 2}, float32).to_sparse()}}),
               UnimplementedError);
  EXPECT_THROW(save_safetensors(path, {{"__metadata__", at::ones({1}, float32)}}),
               InvalidArgumentError);
  EXPECT_EQ(file(), before);
  EXPECT_THROW(save_safetensors(directory + "/none/m", {}), NotFoundError);
}

TEST_F(Safetensors, FilesThatCannotBeLoaded) {
  EXPECT_THROW(load_safetensors(path), NotFoundError);
  write_file("PK\x03\x04 this is a zip file, as torch.save writes it");
  expect_load_error<DataLossError>("is it a safetensors file?");

  const auto one = [&](const std::string& dtype, const std::string& data) {
    std::string json = R"({"w":{"dtype":")" + dtype + R"(","shape":[1],"data_offsets":[0,)" +
                       std::to_string(data.size()) + "]}}";
    write_file(std::string(1, static_cast<char>(json.size())) + std::string(7, '\0') + json + data);
  };
  one("U32", "1234");
  expect_load_error<UnimplementedError>("tensor 'w' is of type uint32");
  one("BOOL", "\x02");
  expect_load_error<DataLossError>("tensor 'w': element 0 is no boolean but 2");
  one("F32", "12");
  expect_load_error<DataLossError>("tensor 'w'");
}

}  // namespace
}  // namespace cohort::train

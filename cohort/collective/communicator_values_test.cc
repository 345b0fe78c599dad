// Values of every dtype and size over every backend, and several calls at once.
#include <ATen/ops/zeros.h>
#include <c10/util/complex.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <limits>
#include <numeric>

#include "cohort/collective/testing_conformance.h"

namespace cohort::collective {
namespace {

// What task `rank` brings at `index`: small, so that integers do not overflow, and with fractions.
double value_of(DType dtype, int rank, int64_t index) {
  const auto whole = static_cast<double>((index * 7 + rank * 3) % 11);
  return c10::isFloatingType(dtype) ? whole - 5 + 0.37 * (rank + 1) : whole;
}

template <class T>
void expect_sums(Communicator& member, DType dtype, const Buffer& buffer) {
  auto* values = static_cast<T*>(buffer.data);
  for (int64_t i = 0; i < buffer.count; ++i) {
    values[i] = static_cast<T>(value_of(dtype, member.rank(), i));
  }
  all_reduce(member, buffer, {.name = "sums"});
  // Rounded once: what a short float loses, it loses at the end.
  const double rounding =
      c10::isFloatingType(dtype) ? static_cast<double>(std::numeric_limits<T>::epsilon()) / 2 : 0;
  int64_t num_wrong = 0;
  for (int64_t i = 0; i < buffer.count; ++i) {
    double sum = 0, magnitude = 0;
    for (int rank = 0; rank < member.size(); ++rank) {
      const auto brought = static_cast<double>(static_cast<T>(value_of(dtype, rank, i)));
      sum += brought;
      magnitude += std::abs(brought);
    }
    // Sums of floats are rounded at each step, those of short floats in float32.
    const double in_between = magnitude * member.size() *
                              (dtype == float64             ? 1.2e-16
                               : c10::isFloatingType(dtype) ? 6e-8
                                                            : 0);
    const double difference = std::abs(static_cast<double>(values[i]) - sum);
    if (difference > std::abs(sum) * rounding + in_between) ++num_wrong;
  }
  EXPECT_EQ(num_wrong, 0) << buffer.count << ' ' << internal::dtype_name(dtype);
}

// Whole numbers, so that sums are exact; the two parts differ.
template <class Part>
void expect_complex_sums(Communicator& member, const Buffer& buffer) {
  using Number = c10::complex<Part>;
  const auto brought = [&](int rank, int64_t index) {
    return Number(static_cast<Part>((index * 7 + rank * 3) % 11),
                  static_cast<Part>((index * 5 + rank) % 13 - 6));
  };
  auto* values = static_cast<Number*>(buffer.data);
  for (int64_t i = 0; i < buffer.count; ++i) values[i] = brought(member.rank(), i);
  all_reduce(member, buffer, {.name = "sums"});
  int64_t num_wrong = 0;
  for (int64_t i = 0; i < buffer.count; ++i) {
    Number sum(0, 0);
    for (int rank = 0; rank < member.size(); ++rank) sum += brought(rank, i);
    if (values[i] != sum) ++num_wrong;
  }
  EXPECT_EQ(num_wrong, 0) << buffer.count << ' ' << internal::dtype_name(buffer.dtype);
}

void expect_sums_of(Communicator& member, DType dtype, const Buffer& buffer) {
  switch (dtype) {
    case DType::Byte:
      return expect_sums<uint8_t>(member, dtype, buffer);
    case DType::Char:
      return expect_sums<int8_t>(member, dtype, buffer);
    case DType::Short:
      return expect_sums<int16_t>(member, dtype, buffer);
    case DType::Int:
      return expect_sums<int32_t>(member, dtype, buffer);
    case DType::Long:
      return expect_sums<int64_t>(member, dtype, buffer);
    case DType::Half:
      return expect_sums<at::Half>(member, dtype, buffer);
    case DType::BFloat16:
      return expect_sums<at::BFloat16>(member, dtype, buffer);
    case DType::Float:
      return expect_sums<float>(member, dtype, buffer);
    case DType::ComplexFloat:
      return expect_complex_sums<float>(member, buffer);
    case DType::ComplexDouble:
      return expect_complex_sums<double>(member, buffer);
    default:
      return expect_sums<double>(member, dtype, buffer);
  }
}

constexpr DType kSummable[] = {DType::Byte,         DType::Char,         DType::Short,
                               DType::Int,          DType::Long,         DType::Half,
                               DType::BFloat16,     DType::Float,        DType::Double,
                               DType::ComplexFloat, DType::ComplexDouble};

TEST_P(CommunicatorConformance, SumsOfEveryDtypeAndSizeInOwnAndOtherMemory) {
  constexpr int64_t kMost = 40'000;
  for (const int size : {2, 3, 8}) {
    expect_none(run_tasks(make(size), [&](Communicator& member) {
      const Buffer own = member.buffer(kMost * 16);
      std::vector<c10::complex<double>> other(kMost);
      int calls = 0;
      for (const DType dtype : kSummable) {
        for (const int64_t count : {int64_t{0}, int64_t{4}, int64_t{63}, int64_t{5000}, kMost}) {
          // In turn none of the tasks uses own memory, all do, some do.
          if (size > 3 && count == kMost) continue;
          const bool in_own = calls % 3 == 0 ? false : calls % 3 == 1 || member.rank() % 2 == 0;
          expect_sums_of(member, dtype, {in_own ? own.data : other.data(), count, dtype});
          ++calls;
        }
      }
    }));
  }
}

// As in a step, whose leader takes memory while the communication thread makes calls.
TEST_P(CommunicatorConformance, MemoryIsTakenDuringCalls) {
  constexpr int64_t kCount = 100'000;
  expect_none(run_tasks(make(3), [&](Communicator& member) {
    const Buffer own = member.buffer(kCount * 4);
    auto takes = std::async(std::launch::async, [&] {
      for (int i = 0; i < 300; ++i) *static_cast<char*>(member.buffer(4096).data) = 1;
    });
    auto* const values = static_cast<float*>(own.data);
    for (int call = 0; call < 20; ++call) {
      std::fill_n(values, kCount, static_cast<float>(member.rank() + call));
      all_reduce(member, {values, kCount, float32}, {.name = "sum"});
      EXPECT_EQ(std::count(values, values + kCount, static_cast<float>(3 + 3 * call)), kCount);
    }
    takes.get();
  }));
}

TEST_P(CommunicatorConformance, Sums64Megabytes) {
  if (GetParam().is_checked) return;  // the check does not see the values
  constexpr int64_t kCount = 16 << 20;
  expect_none(run_tasks(make(2), [&](Communicator& member) {
    for (const bool in_own : {true, false}) {
      Tensor memory = in_own ? Tensor() : at::zeros({kCount});
      Buffer buffer =
          in_own ? member.buffer(kCount * 4) : Buffer{memory.data_ptr(), kCount * 4, uint8};
      buffer = {buffer.data, kCount, float32};
      auto* values = static_cast<float*>(buffer.data);
      const auto mine = static_cast<float>(member.rank() + 1);
      for (int64_t i = 0; i < kCount; i += 4099) values[i] = mine * static_cast<float>(i % 977);
      values[kCount - 1] = mine;
      all_reduce(member, buffer, {.name = "large"});
      int64_t num_wrong = values[kCount - 1] == 3 ? 0 : 1;
      for (int64_t i = 0; i < kCount; i += 4099) {
        if (values[i] != 3 * static_cast<float>(i % 977)) ++num_wrong;
      }
      EXPECT_EQ(num_wrong, 0);
    }
  }));
}

TEST_P(CommunicatorConformance, PartsOfManyPiecesAndNone) {
  for (const int size : {2, 4, 8}) {
    std::vector<int64_t> counts(static_cast<size_t>(size), 70'001);
    counts[1] = 0;
    counts.back() = 200'000;
    const int64_t total = std::accumulate(counts.begin(), counts.end(), int64_t{0});
    for (const bool in_own : {true, false}) {
      expect_none(run_tasks(make(size), [&](Communicator& member) {
        std::vector<float> other(static_cast<size_t>(total));
        float* values = in_own ? static_cast<float*>(member.buffer(total * 4).data) : other.data();
        for (int64_t i = 0; i < total; ++i)
          values[i] = static_cast<float>(i % 1013 + member.rank());
        const Buffer buffer{values, total, float32};
        member.reduce_scatter({&buffer, 1}, counts, {.name = "rs"})->wait(Deadline::max());
        all_gather(member, buffer, counts, {.name = "ag"});
        int64_t num_wrong = 0;
        for (int64_t i = 0; i < total; ++i) {
          const int64_t sum = size * (i % 1013) + size * (size - 1) / 2;
          if (values[i] != static_cast<float>(sum)) ++num_wrong;
        }
        EXPECT_EQ(num_wrong, 0);
        if (member.rank() == size - 1) std::iota(values, values + total, 0.0f);
        broadcast(member, buffer, size - 1, {.name = "bc"});
        EXPECT_EQ(values[total / 2], static_cast<float>(total / 2));
        EXPECT_EQ(values[total - 1], static_cast<float>(total - 1));
      }));
    }
  }
}

TEST_P(CommunicatorConformance, FastAndSlowTasksWithSeveralCallsInFlight) {
  constexpr int kTasks = 4, kRounds = 40;
  const int64_t sizes[] = {1, 3000, 90'000};
  expect_none(run_tasks(make(kTasks), [&](Communicator& member) {
    for (int round = 0; round < kRounds; ++round) {
      // Each is behind in turn.
      for (int i = 0; round % kTasks == member.rank() && i < 1000; ++i) std::this_thread::yield();
      std::vector<std::vector<int32_t>> values;
      std::vector<std::unique_ptr<Work>> works;
      for (const int64_t count : sizes) {
        const int32_t mine = round * 10 + member.rank();
        const Buffer buffer =
            buffer_over(values.emplace_back(static_cast<size_t>(count + round), mine), int32);
        works.push_back(member.all_reduce({&buffer, 1}, {.name = "in flight"}));
      }
      for (const auto& work : works) work->wait(Deadline::max());
      for (const auto& sums : values) {
        const int32_t expected = kTasks * round * 10 + kTasks * (kTasks - 1) / 2;
        EXPECT_EQ(std::count(sums.begin(), sums.end(), expected),
                  static_cast<int64_t>(sums.size()));
      }
    }
  }));
}

}  // namespace
}  // namespace cohort::collective

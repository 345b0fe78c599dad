// How many sparse rows a second one core of a ps task takes, beside a plain loop over the same
// memory.
//
//   bench_store [--rows N] [--batch N] [--seconds S]
//
// A push is what comes from the wire: a message of rows of 64 floats with ascending ids, decoded
// and applied. Adam's moments decay in every row, as Keras has it, so that it works on the whole
// table: its figure is rows of the table a second. A pull is the rows of a batch, copied into an
// answer.
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/zeros.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "cohort/optim/adam.h"
#include "cohort/optim/sgd.h"
#include "cohort/parameter_server/store/row_ids.h"
#include "cohort/parameter_server/store/store_message.h"
#include "timing.h"

namespace {

using namespace cohort;
using namespace cohort::internal;

constexpr int64_t kWidth = 64;
constexpr size_t kBatches = 16;  // that take turns

struct Flags {
  int64_t rows = 1 << 20;
  int64_t batch = 8192;
  double seconds = 1;
};

Flags parse(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--rows") flags.rows = std::atoll(argv[i + 1]);
    if (name == "--batch") flags.batch = std::atoll(argv[i + 1]);
    if (name == "--seconds") flags.seconds = std::atof(argv[i + 1]);
  }
  return flags;
}

struct Batch {
  Tensor ids;
  Tensor gradient;
};

void print(const char* what, double rows, double seconds) {
  std::printf("%-34s %8.2f million rows/s  %7.1f us\n", what, rows / seconds / 1e6, seconds * 1e6);
  std::fflush(stdout);
}

rpc::Message push_of(const Batch& batch, std::shared_ptr<const optim::UpdateRule> rule,
                     std::vector<ShardKey> slots) {
  return encode(ApplyRequest{.ops = {UpdateShard{.key = {0, 0},
                                                 .slots = std::move(slots),
                                                 .gradient = batch.gradient,
                                                 .indices = batch.ids,
                                                 .rule = std::move(rule),
                                                 .learning_rate = 0.01}}});
}

// The least there is to do: w -= rate * g.
void plain_update(float* table, const Batch& batch) {
  const int64_t* id = batch.ids.data_ptr<int64_t>();
  const float* gradient = batch.gradient.data_ptr<float>();
  for (int64_t i = 0; i < batch.ids.numel(); ++i, gradient += kWidth) {
    float* const row = table + id[i] * kWidth;
    for (int64_t k = 0; k < kWidth; ++k) row[k] -= 0.01f * gradient[k];
  }
}

void measure(const Flags& flags) {
  VariableStore store;
  store.create({0, 0}, "table", at::rand({flags.rows, kWidth}));
  std::vector<Batch> batches;
  double rows = 0;
  for (size_t i = 0; i < kBatches; ++i) {
    const Tensor ids = distinct_rows(at::randint(flags.rows, {flags.batch}, int64)).ids.clone();
    batches.push_back({ids, at::rand({ids.numel(), kWidth})});
    rows += static_cast<double>(ids.numel()) / kBatches;
  }
  const auto turn = [](int64_t i) { return static_cast<size_t>(i) % kBatches; };
  const auto timed = [&](const std::function<void(int64_t)>& step) {
    return bench::time_steps(flags.seconds, step);
  };

  Tensor raw = at::rand({flags.rows, kWidth});
  print("plain loop, SGD", rows,
        timed([&](int64_t i) { plain_update(raw.data_ptr<float>(), batches[turn(i)]); }));
  raw = Tensor();

  std::vector<rpc::Message> pushes;
  const std::shared_ptr<const optim::UpdateRule> sgd = optim::make_sgd();
  for (const Batch& batch : batches) pushes.push_back(push_of(batch, sgd, {}));
  const auto push = [&](int64_t i) { store.apply(0, decode_apply(pushes[turn(i)]).ops); };
  print("push, SGD", rows, timed(push));

  print("pull", rows, timed([&](int64_t i) {
          if (!store.read_rows({0, 0}, batches[turn(i)].ids).tensor.defined()) std::abort();
        }));
  print("distinct rows of a batch", static_cast<double>(flags.batch),
        timed([ids = at::randint(flags.rows, {flags.batch}, int64)](int64_t) {
          if (!distinct_rows(ids).ids.defined()) std::abort();
        }));

  store.create({1, 0}, "m", at::zeros({flags.rows, kWidth}));
  store.create({2, 0}, "v", at::zeros({flags.rows, kWidth}));
  const std::shared_ptr<const optim::UpdateRule> adam = optim::make_adam();
  for (size_t i = 0; i < kBatches; ++i) {
    pushes[i] = push_of(batches[i], adam, {{1, 0}, {2, 0}});
  }
  print("push, Adam, rows of the table", static_cast<double>(flags.rows), timed(push));
}

}  // namespace

int main(int argc, char** argv) {
  at::set_num_threads(1);
  measure(parse(argc, argv));
  return 0;
}

#include "cohort/transform/passes/task_analyses.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/caught_error.h"
#include "cohort/core/function_ref.h"
#include "cohort/core/text.h"
#include "cohort/distribute/tasks/task_errors.h"
#include "cohort/transform/passes/saved_part.h"

namespace cohort::internal {
namespace {

constexpr const char* kCall = "analyze_dataset";
constexpr std::chrono::seconds kBetweenLooks{1};

// Keeps tasks that read in touch with each other.
class ReadingTogether {
 public:
  explicit ReadingTogether(collective::SyncGroup& group) : group_(group) {}

  // Looks after the others, if it is time. Errors: those of the others.
  void look() {
    if (std::chrono::steady_clock::now() < next_) return;
    exchange([] { return std::string(); });
    next_ = std::chrono::steady_clock::now() + kBetweenLooks;
  }
  // This task has read its share. Waits for the others, and returns the number of all rows.
  int64_t finish(int64_t rows) {
    std::vector<std::string> all;
    do {
      all = exchange([&] { return str(rows); });
    } while (std::find(all.begin(), all.end(), "") != all.end());
    int64_t sum = 0;
    for (const std::string& text : all) {
      int64_t own = 0;
      std::from_chars(text.data(), text.data() + text.size(), own);
      sum += own;
    }
    return sum;
  }
  // This task has failed. Tells the others, unless the error has come from them.
  [[noreturn]] void fail(const std::exception_ptr& error) {
    if (!has_failed_) exchange([&]() -> std::string { std::rethrow_exception(error); });
    std::rethrow_exception(error);
  }

 private:
  std::vector<std::string> exchange(FunctionRef<std::string()> mine) {
    try {
      return texts_of_all_tasks_or_error(group_, kCall, mine);
    } catch (...) {
      has_failed_ = true;
      throw;
    }
  }

  collective::SyncGroup& group_;
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + kBetweenLooks;
  bool has_failed_ = false;
};

PhasePart read_together(const TransformGraph& graph, int phase, const AnalysesRun& run,
                        const data::Dataset& share, PassOptions options,
                        collective::SyncGroup& group) {
  ReadingTogether together(group);
  options.between_batches = [&together] { together.look(); };
  PhasePart part;
  try {
    part = read_part(graph, phase, run, share, options);
  } catch (...) {
    together.fail(caught_error());
  }
  part.rows = together.finish(part.rows);
  return part;
}

// Adds the other tasks' parts to that of the first task.
void bring_to_first(PhasePart& part, collective::SyncGroup& group) {
  const bool is_first = group.view()->task == 0;
  PartBlocks saved(part.accumulators);
  std::vector<std::string> blocks;
  const auto is_empty = [](const std::string& block) { return block.empty(); };
  do {
    blocks = texts_of_all_tasks_or_error(group, kCall, [&]() -> std::string {
      if (!is_first) return saved.next().value_or("");
      for (size_t task = 0; task < blocks.size(); ++task) {
        if (blocks[task].empty()) continue;
        add_saved_block(part.accumulators, blocks[task], str("the part of worker ", task));
      }
      return "";
    });
  } while (!std::all_of(blocks.begin(), blocks.end(), is_empty));
}

}  // namespace

AnalysesRun run_analyses_of_tasks(const TransformGraph& graph, const data::Dataset& share,
                                  const PassOptions& options, collective::SyncGroup& group) {
  const bool is_first = group.view()->task == 0;
  AnalysesRun run(graph);
  for (int phase = 0; phase < graph.num_phases; ++phase) {
    PhasePart part = read_together(graph, phase, run, share, options, group);
    bring_to_first(part, group);
    const int64_t rows = part.rows;
    const auto results = texts_of_all_tasks_or_error(group, kCall, [&]() -> std::string {
      if (!is_first) return "";
      finish_part(graph, phase, std::move(part), options, run);
      return results_text(run);
    });
    part.accumulators.clear();
    if (!is_first) put_results(run, graph, results.front(), "the results of the first worker");
    run.rows = rows;
  }
  return run;
}

}  // namespace cohort::internal

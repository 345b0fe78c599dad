#include "cohort/cluster/launch/launcher.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <iomanip>
#include <memory>
#include <ostream>

#include "cohort/cluster/launch/elastic_rules.h"
#include "cohort/cluster/launch/signal_source.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/core/text_stream.h"
#include "cohort/core/threads/backoff.h"
#include "cohort/core/threads/bounded_wait.h"

namespace cohort::internal {
namespace {

using Clock = std::chrono::steady_clock;

// How long readers have, after a signal, to read the rest of the output.
constexpr std::chrono::milliseconds kOutputGrace{500};

LaunchOptions with_bounded_waits(LaunchOptions options) {
  for (std::chrono::milliseconds* const wait :
       {&options.restart_delay, &options.steady_after, &options.failure_grace, &options.grace}) {
    *wait = bounded_wait(*wait);
  }
  return options;
}

class Job {
 public:
  // Lines for the same terminal wait in one place, so that none begins within another.
  Job(const JobPlan& plan, const LaunchOptions& options)
      : options_(with_bounded_waits(options)),
        min_workers_(plan.min_workers),
        out_(std::make_shared<OutputSink>(options.out.fd)),
        err_(out_) {
    if (!is_same_file(options.out.fd, options.err.fd)) {
      err_ = std::make_shared<OutputSink>(options.err.fd);
    }
    const auto has_ps = [](const PlannedTask& task) { return task.id.job == "ps"; };
    has_ps_ = std::any_of(plan.tasks.begin(), plan.tasks.end(), has_ps);
    int number = 0;
    for (const PlannedTask& task : plan.tasks) {
      tasks_.push_back(
          {std::make_unique<TaskRun>(plan, task, number++, TaskLines{*out_, options.out.colored},
                                     TaskLines{*err_, options.err.colored}),
           restart_delays()});
    }
    for (State& state : tasks_) turn_.push_back(&state);
  }

  LaunchResult run() {
    for (State& state : tasks_) state.run->start();
    while (is_anything_left()) {
      wait();
      for (int signal = signals_.next(); signal != 0; signal = signals_.next()) on_signal(signal);
      out_->write_some();
      err_->write_some();
      // Each turn begins with another task, so that one that fills the sinks leaves room to the
      // others.
      std::rotate(turn_.begin(), turn_.begin() + 1, turn_.end());
      for (State* state : turn_) {
        state->run->forward_output();
        if (state->run->collect()) on_end(*state);
      }
      on_time(Clock::now());
    }
    const LaunchResult done = result();
    if (options_.summary) {
      TextStream summary;
      print_summary(done, summary);
      err_->add(std::move(summary).str());
    }
    write_rest();
    return done;
  }

 private:
  struct State {
    std::unique_ptr<TaskRun> run;
    Backoff restart_delays;  // of failures in a row, before it has run for a while
    std::optional<Clock::time_point> restart_at = std::nullopt;
    std::optional<Clock::time_point> stop_at = std::nullopt;  // if it still runs then
    bool stopped = false;
  };
  // While the tasks that train in step end, to start again together.
  struct Regroup {
    Clock::time_point start_at;   // not before
    Clock::time_point next_step;  // when those that still run get a signal
    int signal = SIGTERM;         // which
  };

  bool is_anything_left() const {
    return std::any_of(tasks_.begin(), tasks_.end(), [](const State& state) {
      return state.run->is_running() || state.restart_at;
    });
  }

  // A reader that stands still is waited for, as by any program that writes, until a signal comes.
  void write_rest() {
    std::optional<Clock::time_point> until;
    if (caught_ != 0) until = Clock::now() + kOutputGrace;
    while (out_->waiting_fd() >= 0 || err_->waiting_fd() >= 0) {
      if (until && *until <= Clock::now()) return;
      std::vector<pollfd> fds = {{signals_.fd(), POLLIN, 0},
                                 {out_->waiting_fd(), POLLOUT, 0},
                                 {err_->waiting_fd(), POLLOUT, 0}};
      ::poll(fds.data(), fds.size(), until ? milliseconds_to(*until) : -1);
      if (signals_.next() != 0) return;
      out_->write_some();
      err_->write_some();
    }
  }

  static int milliseconds_to(Clock::time_point due) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(due - Clock::now()).count();
    return static_cast<int>(std::clamp<int64_t>(left, 0, 60'000));
  }

  // For something to do, until the next moment at which something is due.
  void wait() {
    std::vector<pollfd> fds = {{signals_.fd(), POLLIN, 0},
                               {out_->waiting_fd(), POLLOUT, 0},
                               {err_->waiting_fd(), POLLOUT, 0}};
    std::optional<Clock::time_point> due = next_step_;
    if (regroup_) due = due ? std::min(*due, regroup_->next_step) : regroup_->next_step;
    for (const State& state : tasks_) {
      fds.push_back({state.run->pidfd(), POLLIN, 0});
      fds.push_back({state.run->stdout_fd(), POLLIN, 0});
      fds.push_back({state.run->stderr_fd(), POLLIN, 0});
      for (const auto& at : {state.restart_at, state.stop_at, state.run->look_at()}) {
        if (at) due = due ? std::min(*due, *at) : *at;
      }
    }
    ::poll(fds.data(), fds.size(), due ? milliseconds_to(*due) : -1);
  }

  void on_signal(int signal) {
    if (caught_ == 0) {
      caught_ = signal;
      say(str(signal_name(signal), ": passed on to the tasks; the next one ends them"));
      for (State& state : tasks_) state.run->send_signal(signal);
      begin_end(options_.grace);
    } else {
      escalate();
    }
  }

  void on_end(State& state) {
    const ExitStatus status = *state.run->status();
    if (over_) return;
    if (is_elastic(state)) return on_elastic_end(state);
    const TaskRun& run = *state.run;
    const bool may_restart = status.shell_code() >= 128;
    if (regroup_ && is_in_step(state) && (status.ok() || may_restart || state.stopped)) {
      return start_together();
    }
    if (status.ok()) {
      if (is_done()) {
        begin_end(options_.grace);
        hurry_late_tasks();
      } else if (is_serving(state)) {
        follow_chief(state);
      }
      return;
    }
    const std::string how = describe(status) + memory_note(state);
    const int restarts = run.num_starts() - 1;
    if (may_restart && restarts < options_.restarts) {
      const std::chrono::milliseconds delay = next_delay(state);
      const bool together = num_in_step() > 1 && is_in_step(state);
      say(str(run.task().label(), " ", how, together ? "; all workers start again" : "",
              "; restart ", restarts + 1, " of ", options_.restarts, " in ", delay.count(), " ms"));
      if (!together) {
        state.restart_at = Clock::now() + delay;
        if (leads_servers(state)) bring_back_servers(state);
        return;
      }
      regroup_ = {.start_at = Clock::now() + delay,
                  .next_step = Clock::now() + options_.failure_grace};
      return start_together();
    }
    if (can_go_on_without(state)) {
      return say(str(run.task().label(), " ", how, "; the job goes on without it"));
    }
    failure_ = status.shell_code();
    say(str(run.task().label(), " ", how, "; ending the other tasks"));
    begin_end(options_.failure_grace);
  }

  // A worker of a job whose others go on without it.
  bool is_elastic(const State& state) const {
    return min_workers_ > 0 && state.run->task().id.job == "worker";
  }

  void on_elastic_end(State& state) {
    const ElasticVerdict verdict = judge(elastic_workers(), min_workers_);
    if (!state.run->status()->ok()) on_elastic_loss(state, verdict);
    if (verdict.next == ElasticVerdict::kFailed) {
      failure_ = verdict.exit_code;
      begin_end(options_.failure_grace);
    } else if (verdict.next == ElasticVerdict::kDone) {
      for (const State& other : tasks_) {
        if (!is_elastic(other) || !other.restart_at) continue;
        say(str(other.run->task().label(), " is not started again: the others are done"));
      }
      begin_end(options_.grace);
    }
  }

  void on_elastic_loss(State& state, const ElasticVerdict& verdict) {
    const TaskRun& run = *state.run;
    const std::string how =
        str(run.task().label(), " ", describe(*run.status()), memory_note(state), "; ");
    if (verdict.next == ElasticVerdict::kFailed) {
      say(str(how, verdict.reason, "; ending the other tasks"));
    } else if (may_return(state)) {
      const std::chrono::milliseconds delay = next_delay(state);
      state.restart_at = Clock::now() + delay;
      say(str(how, "the others go on; restart ", run.num_starts(), " of ", options_.restarts,
              " in ", delay.count(), " ms"));
    } else {
      say(str(how, "the job goes on without it"));
    }
  }

  // Whether an elastic worker has failed and is, or may be, started again.
  bool may_return(const State& state) const {
    const TaskRun& run = *state.run;
    return run.status() && may_come_back(*run.status()) && run.num_starts() <= options_.restarts;
  }

  std::vector<ElasticWorker> elastic_workers() const {
    std::vector<ElasticWorker> workers;
    for (const State& state : tasks_) {
      if (!is_elastic(state)) continue;
      const TaskRun& run = *state.run;
      const bool is_new =
          run.num_starts() > 1 && Clock::now() - run.last_start() < options_.steady_after;
      workers.push_back({.runs = run.is_running(),
                         .came_late = run.is_running() && is_new,
                         .may_return = may_return(state),
                         .status = run.status(),
                         .ended = run.last_end()});
    }
    return workers;
  }

  int64_t memory_kills() const {
    const auto& count = options_.memory_kills.count;
    return count ? count().value_or(0) : 0;
  }

  // Why a task was killed, where the kernel has counted that. A kill is told of one task alone.
  std::string memory_note(const State& state) {
    // A script exits with 137 where its program was killed.
    if (state.stopped || state.run->status()->shell_code() != 128 + SIGKILL) return "";
    const int64_t kills = memory_kills() - memory_kills_told_;
    if (kills <= 0) return "";
    ++memory_kills_told_;
    const std::optional<int64_t>& limit = options_.memory_kills.limit_bytes;
    return str(" (probably out of memory: the cgroup counted ", kills == 1 ? "one" : str(kills),
               kills == 1 ? " more kill" : " more kills",
               limit ? str("; its limit is ", *limit >> 20, " MiB") : "", ")");
  }

  Backoff restart_delays() const {
    const std::chrono::seconds longest{min_workers_ > 0 ? 30 : 60};
    return {options_.restart_delay, longest};
  }

  std::chrono::milliseconds next_delay(State& state) const {
    if (state.run->last_run_time() >= options_.steady_after) {
      state.restart_delays = restart_delays();
    }
    return std::chrono::duration_cast<std::chrono::milliseconds>(state.restart_delays.next());
  }

  // Whether the job can go on without this task, which has failed for good. In a job with ps the
  // coordinator gives a lost worker's closures to others.
  bool can_go_on_without(const State& failed) const {
    if (!has_ps_) return false;
    const std::string& job = failed.run->task().id.job;
    if (job == "evaluator") return true;
    return job == "worker" && std::any_of(tasks_.begin(), tasks_.end(), [](const State& state) {
             return state.run->task().id.job == "worker" &&
                    (state.run->is_running() || state.restart_at);
           });
  }

  // Whether the task cannot go on without the others of its kind.
  bool is_in_step(const State& state) const {
    const std::string& job = state.run->task().id.job;
    return !options_.restart_each && !has_ps_ && min_workers_ == 0 &&
           (job == "chief" || job == "worker");
  }
  int64_t num_in_step() const {
    return std::count_if(tasks_.begin(), tasks_.end(),
                         [this](const State& state) { return is_in_step(state); });
  }

  // Once all tasks that train in step have ended.
  void start_together() {
    for (const State& state : tasks_) {
      if (is_in_step(state) && state.run->is_running()) return;
    }
    for (State& state : tasks_) {
      if (!is_in_step(state)) continue;
      state.restart_at = std::max(Clock::now(), regroup_->start_at);
      state.stopped = false;
    }
    regroup_.reset();
  }

  // The chief of a job with ps coordinates it; workers and ps tasks serve it until it says goodbye.
  bool leads_servers(const State& state) const {
    return has_ps_ && state.run->task().id.job == "chief";
  }
  bool is_serving(const State& state) const {
    const std::string& job = state.run->task().id.job;
    return has_ps_ && (job == "worker" || job == "ps");
  }

  // A chief that has said goodbye and then failed starts its program again, and needs all the tasks
  // that have ended by that goodbye.
  void bring_back_servers(const State& chief) {
    bool any = false;
    for (State& state : tasks_) {
      if (!is_serving(state) || !state.run->status() || !state.run->status()->ok()) continue;
      state.restart_at = chief.restart_at;
      any = true;
    }
    if (any) say("the tasks that have ended by the chief's goodbye start again with it");
  }

  // Called when a worker or ps task has ended well while the chief is not done. The goodbye came
  // from the chief of before, if that one has ended since the task started. It may also have come
  // from the present chief, which then ends soon.
  void follow_chief(State& state) {
    for (const State& chief : tasks_) {
      if (!leads_servers(chief)) continue;
      if (chief.restart_at) {
        state.restart_at = chief.restart_at;
      } else if (chief.run->last_start() > state.run->last_start() && chief.run->num_starts() > 1) {
        state.restart_at = Clock::now() + options_.failure_grace;
      }
      if (state.restart_at) {
        say(str(state.run->task().label(),
                " has ended by a goodbye, but the chief starts again; so does it"));
      }
    }
  }

  // Ends those that do not end by themselves.
  void hurry_regroup() {
    for (State& state : tasks_) {
      if (!is_in_step(state) || !state.run->is_running()) continue;
      state.stopped = true;
      state.run->send_signal(regroup_->signal);
    }
    regroup_->signal = SIGKILL;
    regroup_->next_step = Clock::now() + options_.failure_grace;
  }

  // Whether all that the job is for has been done.
  bool is_done() const {
    return std::all_of(tasks_.begin(), tasks_.end(), [this](const State& state) {
      const std::string& job = state.run->task().id.job;
      const bool leads = has_ps_ ? job == "chief" : job == "chief" || job == "worker";
      return !leads || (state.run->status() && state.run->status()->ok());
    });
  }

  // Whether the launcher has stopped the chief with SIGTERM: how the chief ends then is no success.
  bool was_chief_stopped() const {
    return std::any_of(tasks_.begin(), tasks_.end(), [](const State& state) {
      return state.run->task().id.job == "chief" && state.stopped;
    });
  }

  // Begins the end of the job: nothing restarts any more, and the tasks have the time `grace` to
  // end by themselves.
  void begin_end(std::chrono::milliseconds grace) {
    over_ = true;
    regroup_.reset();
    for (State& state : tasks_) state.restart_at.reset();
    next_step_ = Clock::now() + grace;
  }

  // The chief of a job with ps says goodbye to those that have come. One that was started again may
  // have come too late for that, and would look for the chief.
  void hurry_late_tasks() {
    for (State& state : tasks_) {
      if (is_serving(state) && state.run->num_starts() > 1) {
        state.stop_at = Clock::now() + options_.failure_grace;
      }
    }
  }

  void escalate() {
    const int signal = escalation_++ == 0 ? SIGTERM : SIGKILL;
    for (State& state : tasks_) {
      if (!state.run->is_running()) continue;
      state.stopped = caught_ == 0;
      state.run->send_signal(signal);
    }
    next_step_ = Clock::now() + options_.grace;
  }

  void on_time(Clock::time_point now) {
    for (State& state : tasks_) {
      if (state.stop_at && *state.stop_at <= now) {
        state.stop_at.reset();
        state.stopped = state.run->is_running();
        if (state.stopped) state.run->send_signal(SIGTERM);
      }
      if (!state.restart_at || *state.restart_at > now) continue;
      state.restart_at.reset();
      state.run->start();
      if (is_elastic(state)) say(str(state.run->task().label(), " has started again"));
    }
    if (regroup_ && regroup_->next_step <= now) hurry_regroup();
    if (next_step_ && *next_step_ <= now) escalate();
  }

  void say(const std::string& text) const { err_->add(str("cohort launch: ", text, "\n")); }

  LaunchResult result() const {
    LaunchResult result;
    const bool chief_has_done_it = has_ps_ && is_done() && !was_chief_stopped();
    result.exit_code = caught_ != 0 ? 128 + caught_ : chief_has_done_it ? 0 : failure_;
    for (const State& state : tasks_) {
      result.tasks.push_back(
          {.id = state.run->task().id,
           .status = state.run->status(),
           .time = std::chrono::duration_cast<std::chrono::milliseconds>(state.run->time()),
           .restarts = std::max(0, state.run->num_starts() - 1),
           .stopped = state.stopped});
    }
    return result;
  }

  const LaunchOptions options_;
  const int min_workers_;  // of an elastic job; else 0
  int64_t memory_kills_told_ = memory_kills();
  SignalSource signals_;
  std::shared_ptr<OutputSink> out_;
  std::shared_ptr<OutputSink> err_;  // the same where both lead to the same file
  std::vector<State> tasks_;
  std::vector<State*> turn_;  // all of tasks_
  bool has_ps_ = false;
  bool over_ = false;
  int escalation_ = 0;
  int caught_ = 0;   // the first signal
  int failure_ = 0;  // the exit code of the task that ended the job
  std::optional<Clock::time_point> next_step_;
  std::optional<Regroup> regroup_;
};

}  // namespace

LaunchResult launch(const JobPlan& plan, const LaunchOptions& options) {
  return Job(plan, options).run();
}

void print_summary(const LaunchResult& result, std::ostream& out) {
  size_t width = 4;
  for (const TaskSummary& task : result.tasks) {
    width = std::max(width, str(task.id.job, ":", task.id.index).size());
  }
  const auto label_width = static_cast<int>(width);
  out << std::left << std::setw(label_width) << "task"
      << "  exit      seconds  restarts\n";
  for (const TaskSummary& task : result.tasks) {
    std::string how = "-";
    if (task.status && task.status->signal) how = signal_name(*task.status->signal);
    if (task.status && task.status->exit_code) how = str(*task.status->exit_code);
    if (task.status && !task.status->signal && !task.status->exit_code) how = "unknown";
    out << std::left << std::setw(label_width) << str(task.id.job, ":", task.id.index) << "  "
        << std::setw(8) << how << std::right << std::setw(9) << std::fixed << std::setprecision(1)
        << static_cast<double>(task.time.count()) / 1000 << std::setw(10) << task.restarts
        << (task.stopped ? "  stopped by the launcher" : "") << '\n';
  }
}

}  // namespace cohort::internal

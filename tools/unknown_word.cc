#include "tools/unknown_word.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <numeric>
#include <optional>

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::tools {
namespace {

using internal::quoted;
using internal::str;

// How many letters must be put in, left out, changed, or swapped with their neighbour.
size_t distance(const std::string& from, const std::string& to) {
  std::vector<size_t> before_last;
  std::vector<size_t> last(to.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= from.size(); ++i) {
    std::vector<size_t> row(to.size() + 1);
    row[0] = i;
    for (size_t j = 1; j <= to.size(); ++j) {
      const size_t change = last[j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, change});
      const bool swapped = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last = std::move(last);
    last = std::move(row);
  }
  return last.back();
}

// The known word that `word` may have been meant for: a third of its letters may be wrong, or missing at
// its end.
std::optional<std::string> nearest(const std::string& word, const std::vector<std::string>& known) {
  std::optional<std::string> best;
  size_t least = std::max<size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const bool is_cut = word.size() >= 4 && candidate.starts_with(word);
    const size_t wrong = is_cut ? 1 : distance(word, candidate);
    if (wrong >= least) continue;
    least = wrong;
    best = candidate;
  }
  return best;
}

std::string list_of(const std::vector<std::string>& words) {
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "" : ", ") + word;
  return list;
}

std::string advice(const std::string& word, const std::vector<std::string>& known,
                   const char* others) {
  const std::optional<std::string> meant = nearest(word, known);
  if (meant) return str("; did you mean ", quoted(*meant), "?");
  return known.empty() ? "" : str("; ", others, list_of(known));
}

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

const CLI::App* command_of(const CLI::App& app, const std::string& name) {
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_name() == name) return command;
  }
  return nullptr;
}

bool is_option(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && (word[1] < '0' || word[1] > '9');
}

// The words of a call in order: `app` is the command that they have led to.
struct Walk {
  const CLI::App* app;
  std::string name;             // of the command
  bool had_positional = false;  // it takes words that are neither options nor commands
  std::string problem = "";     // with the first word that is not known

  void take(const std::vector<std::string>& arguments) {
    for (size_t i = 0; i < arguments.size() && problem.empty() && arguments[i] != "--"; ++i) {
      if (is_option(arguments[i])) {
        if (take_option(arguments[i])) ++i;
      } else {
        take_word(arguments[i]);
      }
    }
  }

 private:
  // Whether its value is the next word.
  bool take_option(const std::string& word) {
    const std::string option = word.substr(0, word.find('='));
    if (const CLI::Option* known = app->get_option_no_throw(option)) {
      return option == word && known->get_items_expected_max() > 0;
    }
    problem = str('`', name, "` has no option ", quoted(option));
    if (had_positional && app->get_option_no_throw("COMMAND") != nullptr) {
      problem += "; write -- before the program whose option it is";
    } else {
      problem += advice(option, options_of(*app), "there are ");
    }
    return false;
  }

  void take_word(const std::string& word) {
    const std::vector<std::string> commands = commands_of(*app);
    had_positional = commands.empty();
    if (commands.empty()) return;
    if (const CLI::App* command = command_of(*app, word)) {
      app = command;
      name += ' ' + word;
      return;
    }
    problem =
        str('`', name, "` has no command ", quoted(word), advice(word, commands, "there are "));
  }
};

}  // namespace

std::string explain_unknown_word(const CLI::App& app, const std::vector<std::string>& arguments) {
  Walk walk{.app = &app, .name = app.get_name()};
  walk.take(arguments);
  return walk.problem;
}

std::string name_of_command(const CLI::App& app, const std::vector<std::string>& arguments) {
  Walk walk{.app = &app, .name = app.get_name()};
  walk.take(arguments);
  return walk.name;
}

}  // namespace cohort::tools

"""The checks must fail on planted offences, or a clean report would mean nothing."""

import json
import tempfile
import unittest
from pathlib import Path

import clocks
import code_loading
import comments
import declarations
import document_paths
import examples_in_comments
import exports
import includes
import layers
import locale_text
import one_definition
import programs_in_docs
import reference
import rooms
import strategy_names
import torch_diff
import waits


class PlantedOffences(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def write(self, path, text):
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def assert_offence(self, offences, *words):
        self.assertEqual(len(offences), 1, offences)
        for word in words:
            self.assertIn(word, offences[0])

    def test_include_that_points_upwards(self):
        self.write("cohort/keras/layer.h", "")
        self.write("cohort/core/a.h", '#pragma once\n#include "cohort/keras/layer.h"\n')
        self.assert_offence(layers.check(self.root), "cohort/core/a.h:2", "core", "keras")

    def test_room_that_includes_one_above_it(self):
        self.write("cohort/core/threads/pool.h", "")
        self.write("cohort/core/bytes/wire.cc", '\n#include "cohort/core/threads/pool.h"\n')
        self.write("cohort/core/bytes/wire_test.cc", '#include "cohort/core/threads/pool.h"\n')
        self.assert_offence(rooms.check(self.root), "cohort/core/bytes/wire.cc:2", "core/bytes", "core/threads")

    def test_room_without_a_rank(self):
        self.write("cohort/core/error.h", "")
        self.write("cohort/core/attic/a.cc", '#include "cohort/core/error.h"\n')
        self.assert_offence(rooms.check(self.root), "cohort/core/attic/a.cc:1", "core/attic", "no rank")

    def test_modules_in_a_circle(self):
        self.write("cohort/core/a.h", '#include "cohort/core/b.h"\n')
        self.write("cohort/core/b.h", "")
        self.write("cohort/core/b.cc", '#include "cohort/core/b.h"\n#include "cohort/core/c.h"\n')
        self.write("cohort/core/c.h", '#include "cohort/core/a.h"\n')
        self.assert_offence(rooms.check(self.root), "circle", "core/a core/b core/c")

    def test_class_with_two_definitions(self):
        self.write("cohort/core/a.h", "namespace cohort::internal {\nclass COHORT_API Table final : public Base {};\n}\n")
        self.write("cohort/data/b.cc", "namespace cohort::internal {\nnamespace {\nstruct Table {};\n}\n"
                                       "void f() { struct Table {}; }\nclass Other { struct Table {}; };\n"
                                       "struct Other::Table {};\n}\n")
        self.write("cohort/data/b_test.cc", "namespace cohort::internal {\nstruct Table {};\n}\n")
        self.assertEqual(one_definition.check(self.root), [])
        self.write("cohort/data/c.cc", "namespace cohort {\nnamespace internal {\nstruct Table {};\n}\n}\n")
        self.assert_offence(one_definition.check(self.root), "internal::Table", "core/a.h:2", "data/c.cc:3")

    def test_folder_with_too_many_sources(self):
        for i in range(rooms.MOST_SOURCES + 1):
            self.write(f"cohort/ops/a{i}.h", "")
        self.assert_offence(rooms.check(self.root), "cohort/ops", "lie flat")

    def test_comment_without_a_subject_or_too_wide(self):
        self.write("cohort/core/a.h", "int a;\n// Of the second kind.\n")
        self.write("cohort/core/b.h", "// A sentence.\n// Of which this is the second line.\n//   " + "code " * 30 + "\n")
        self.write("cohort/core/a_test.cc", "// Of a test.\n")
        self.assert_offence(comments.check(self.root), "cohort/core/a.h:2", "'Of'")
        self.write("cohort/core/a.h", "// " + "word " * 20 + "\n")
        self.assert_offence(comments.check(self.root), "cohort/core/a.h:1", "103 columns")

    def test_wait_by_the_clock_of_the_wall(self):
        self.write("cohort/cluster/wait.cc", "\nconst auto until = std::chrono::system_clock::now() + limit;\n")
        self.write("cohort/cluster/status_client.cc", "show(std::chrono::system_clock::now());\n")
        self.write("cohort/cluster/good.cc", "// not system_clock::now\nsteady_clock::now();\n")
        self.assert_offence(clocks.check(self.root), "cohort/cluster/wait.cc:2", "system_clock")

    def test_wait_without_a_deadline(self):
        self.write("cohort/parameter_server/a.cc", "\n\nvoid f() { ready_.wait(lock); }\n")
        self.write("cohort/parameter_server/b.cc", "void f() { ready_.wait_for(lock, 1s); }\n")
        self.assert_offence(waits.check(self.root), "cohort/parameter_server/a.cc:3", "no deadline")

    def test_document_that_names_a_source_that_is_gone(self):
        self.write("cohort/core/a.h", "")
        self.write("docs/a.md", "`core/a.h` and `cohort/core/a.h` are\nhere, `core/b.h` is gone\n")
        self.assert_offence(document_paths.check(self.root), "docs/a.md:2", "core/b.h")

    def test_strategy_named_in_keras(self):
        self.write("cohort/keras/fit.cc", "\nif (name == \"MirroredStrategy\") return;\n")
        self.write("cohort/keras/fit_test.cc", "MirroredStrategy strategy;\n")
        self.assert_offence(strategy_names.check(self.root), "cohort/keras/fit.cc:2")

    def test_difference_that_is_not_that_of_the_programs(self):
        self.write("examples/torch_fit/before.cc", "int main() {\n  old();\n}\n")
        self.write("examples/torch_fit/after.cc", "int main() {\n  made_new();\n}\n")
        self.write("docs/fit.md", "```diff\n int main() {\n-  old();\n+  other();\n }\n```\n")
        self.assert_offence(torch_diff.check(self.root), "docs/fit.md", "another difference")
        self.write("docs/fit.md", "```diff\n int main() {\n-  old();\n+  made_new();\n }\n```\n")
        self.assertEqual(torch_diff.check(self.root), [])
        self.write("docs/fit.md", "nothing")
        self.assert_offence(torch_diff.check(self.root), "shows no difference")

    def test_text_that_depends_on_the_locale(self):
        for call in ("std::snprintf(text, 9, \"%f\", x)", "std::ostringstream out", "strtod(text, nullptr)",
                     "std::stod(text)", "std::to_string(x)", "std::transform(a, b, c, ::tolower)",
                     "std::isalpha(c)", "static const std::regex form(\"x\")", "std::strftime(t, 9, \"%a\", &tm)",
                     "std::ofstream(path) << 1000", "std::format(\"{:L}\", x)", "sscanf(text, \"%f\", &x)",
                     "::fnmatch(pattern, name, 0)", "std::strerror(errno)", "ec.message()",
                     "std::locale::global(l)", "strcoll(a, b)", "std::put_time(&tm, \"%c\")"):
            for folder in ("cohort/core", "tools"):
                self.write("tools/a.cc", "")
                self.write(f"{folder}/a.cc", f"// snprintf is not used here\nvoid f() {{ {call}; }}\n")
                self.assert_offence(locale_text.check(self.root), f"{folder}/a.cc:2", "locale")
                self.write(f"{folder}/a.cc", "")

    def test_text_of_tests_and_beneath_the_classic_locale(self):
        self.write("cohort/core/a_test.cc", "std::ostringstream out;\n")
        self.write("cohort/core/testing_a.h", "std::to_string(1);\n")
        self.write("cohort/core/glob.cc", "const ClassicLocale classic;\nfnmatch(a, b, 0);\n")
        self.write("cohort/core/b.cc", "my_printf(1); is_digit(c); decimal_digits(1); error.message;\n")
        self.assertEqual(locale_text.check(self.root), [])

    def test_include_among_folders_of_one_rank(self):
        self.write("cohort/cluster/spec.h", "")
        self.write("cohort/data/a.cc", '#include "cohort/cluster/spec.h"\n')
        self.assert_offence(layers.check(self.root), "data may not include cluster")

    def test_include_downwards_and_in_a_test_is_allowed(self):
        self.write("cohort/core/a.h", "")
        self.write("cohort/keras/b.h", '#include "cohort/core/a.h"\n')
        self.write("cohort/core/a_test.cc", '#include "cohort/keras/b.h"\n')
        self.assertEqual(layers.check(self.root), [])

    def test_include_of_testing_by_the_library(self):
        self.write("cohort/testing/runner.h", "")
        self.write("cohort/keras/b.cc", '#include "cohort/testing/runner.h"\n')
        self.assert_offence(layers.check(self.root), "keras may not include testing")

    def test_missing_header(self):
        self.write("cohort/core/a.h", '#include "cohort/core/gone.h"\n')
        self.assert_offence(layers.check(self.root), "gone.h", "does not exist")

    def test_relative_include(self):
        self.write("cohort/core/a.cc", '#include "a.h"\n')
        self.assert_offence(layers.check(self.root), "named from the root")

    def test_folder_without_a_rank(self):
        self.write("cohort/extra/a.h", "")
        self.assert_offence(layers.check(self.root), "extra", "no rank")

    def test_whole_libtorch(self):
        for header in ("torch/torch.h", "ATen/ATen.h"):
            found = includes.check_file("tests/a.cc", f"#include <{header}>\n", {})
            self.assert_offence(found, header, "anywhere")

    def test_libtorch_in_a_public_header(self):
        text = "#include <ATen/ops/empty.h>\n"
        found = includes.check_file("cohort/core/a.h", text, {}, public=True)
        self.assert_offence(found, "public header")
        self.assertEqual(includes.check_file("cohort/core/a.cc", text, {}), [])

    def test_public_is_what_the_umbrella_reaches(self):
        self.write("cohort/cohort.h", '#include "cohort/core/a.h"\n')
        self.write("cohort/core/a.h", '#include "cohort/core/b.h"\n')
        self.write("cohort/core/b.h", "")
        self.write("cohort/core/private.h", "")
        self.assertEqual(includes.public_headers(self.root),
                         {"cohort/cohort.h", "cohort/core/a.h", "cohort/core/b.h"})

    def test_data_header_lacks_a_header(self):
        self.write("cohort/cohort.h", '#include "cohort/core/a.h"\n#include "cohort/data/b.h"\n'
                                      '#include "cohort/keras/c.h"\n')
        self.write("cohort/data.h", '#include "cohort/core/a.h"\n')
        self.assert_offence(includes.check_data_header(self.root), "lacks", "cohort/data/b.h")
        self.write("cohort/data.h", '#include "cohort/core/a.h"\n#include "cohort/data/b.h"\n')
        self.assertEqual(includes.check_data_header(self.root), [])

    def test_modules_only_where_granted(self):
        text = "#include <torch/nn/module.h>\n"
        self.assert_offence(includes.check_file("cohort/keras/a.cc", text, {}), "torch/nn/module.h")
        grants = includes.read_grants("cohort/keras/a.cc torch/nn/*  # the bridge\n")
        self.assertEqual(includes.check_file("cohort/keras/a.cc", text, grants), [])

    def test_wire_format_in_a_public_header(self):
        for header in ("grpcpp/grpcpp.h", "google/protobuf/message.h", "cohort/cluster/rpc.pb.h"):
            found = includes.check_file("cohort/core/a.h", f"#include <{header}>\n", {},
                                        public=True)
            self.assert_offence(found, header)

    def test_own_header_not_first(self):
        self.write("cohort/core/a.h", "")
        found = includes.check_own_header_first(
            self.root, "cohort/core/a.cc", '#include <vector>\n#include "cohort/core/a.h"\n')
        self.assert_offence(found, "cohort/core/a.h")

    def test_quoted_without_its_header(self):
        for call in ("quoted(name)", "internal::quoted(name)", "cohort::internal::quoted(name)"):
            found = includes.check_quoted(self.root, "cohort/core/a.cc", f"#include <string>\nauto x = {call};\n")
            self.assert_offence(found, "cohort/core/a.cc:2", "std::quoted")
        for text in ('#include "cohort/core/text.h"\nauto x = quoted(name);\n', "// quoted(name)\n", "std::quoted(name);\n",
                     "was_quoted(name);\n"):
            self.assertEqual(includes.check_quoted(self.root, "cohort/core/a.cc", text), [])
        self.write("cohort/core/a.h", '#include "cohort/core/text.h"\n')
        self.assertEqual(includes.check_quoted(self.root, "cohort/core/a.cc", "quoted(name);\n"), [])

    def test_code_loading(self):
        for call in ("torch::load(x)", "torch::jit::load(f)", 'dlopen("a", 1)', "system (cmd)",
                     'popen("ls")', "torch::pickle_load(x)"):
            self.write("cohort/core/a.cc", f"// torch::load is not used here\nvoid f() {{ {call}; }}\n")
            self.assert_offence(code_loading.check(self.root), "cohort/core/a.cc:2")

    def test_exports(self):
        def function(name, place):
            return {"kind": "FunctionDecl", "id": place, "name": name,
                    "mangledName": f"_ZN6cohort1{name}Ev"}

        ast = [{"kind": "NamespaceDecl", "name": "cohort", "inner": [
            function("f", "1"),
            {"kind": "NamespaceDecl", "name": "internal",
             "inner": [function("g", "2"), function("h", "3")]},
            {"kind": "DeclRefExpr", "referencedDecl": {"id": "3"}}]}]
        found = exports.Declarations(exports.read_ast(json.dumps(ast[0])))
        self.assertEqual(exports.check(found, {"_ZN6cohort1fEv"}, {"_ZN6cohort1gEv"}), [])
        for hidden in ("f", "h"):
            self.assert_offence(exports.check(found, set(), {f"_ZN6cohort1{hidden}Ev"}), hidden,
                                "COHORT_API")
        self.assert_offence(exports.check(found, {"_ZN6cohort1kEv"}, set()), "k", "no installed")
        self.assertEqual(found.names, {"f"})
        self.assert_offence(exports.check_reference(found.names, "`void off()`"), "f", "reference.md")
        self.assertEqual(exports.check_reference(found.names, "`void f()`"), [])

    def test_header_without_a_section_of_the_reference(self):
        self.write("cohort/cohort.h", '#include "cohort/core/a.h"\n#include "cohort/core/b.h"\n')
        self.write("cohort/core/b.h", "namespace cohort::internal {\nvoid f();\n}\n")
        self.write("cohort/core/a.h", "namespace cohort {\nclass Later;\n}  // namespace cohort\n")
        self.assertEqual(list(reference.left_out(self.root)), [])
        self.write("cohort/core/a.h", "namespace cohort {\nvoid f();\n}  // namespace cohort\n")
        self.assertEqual(list(reference.left_out(self.root)), ["cohort/core/a.h"])

    def test_declarations(self):
        text = ("namespace cohort {\n// What it does.\ntemplate <class T>\nrequires(A<T> && b<T>()) "
                "std::vector<T>\n    f(T a,  // one\n      int b = {1})\nconst {\n  return {};\n}\n"
                "struct A {\n  int64_t a = 1'000;  // many\n  std::function<int(int)> g = {};\n};\n"
                "}  // namespace cohort\n")
        (_, members), = declarations.public_namespaces(text)[1:]
        self.assertEqual(declarations.function(members[0].head),
                         ("std::vector<T>", "f", "T a, int b = {1}", "const"))
        self.assertEqual(members[0].comment, ["What it does."])
        self.assertEqual(declarations.type_name(members[1].head), ("struct", "A"))
        self.assertEqual([(field.head, field.note) for field in declarations.scan(members[1].body)],
                         [("int64_t a = 1'000", "many"), ("std::function<int(int)> g = {}", "")])
        self.assertEqual(declarations.type_name("class [[nodiscard]] COHORT_API B"), ("class", "B"))

    def test_functions_of_options_are_no_fields_in_the_reference(self):
        text = ("namespace cohort {\nstruct COHORT_API AOptions {\n  int a = 1;\n  // Checks.\n"
                "  void check() const;\n};\n}  // namespace cohort\n")
        self.assertEqual(list(reference.structs(text)), [("AOptions", [("a", "1", "")])])

    def test_comments_and_similar_names_are_no_offence(self):
        self.write("cohort/core/a.cc",
                   '/* dlopen */ int file_system(int);\nauto s = "//"; int download(int);\n')
        self.assertEqual(code_loading.check(self.root), [])

    def test_examples_are_the_code_of_comments(self):
        text = ("// What it is.\n//\n//   f(1);\n//\n//   g(2);   // a call\n// Prose.\n#pragma once\n"
                "//   a list   of words\n//\n// Prose.\n  //   h();\nint x;\n")
        found = [[code for _, code in block] for block in examples_in_comments.examples(text)]
        self.assertEqual(found, [["f(1);", "", "g(2);   // a call"], ["h();"]])
        self.assertEqual([block[0][0] for block in examples_in_comments.examples(text)], [3, 11])

    def test_what_examples_leave_out(self):
        for line, whole in (("...", ";"), ("for (const auto& x : xs) ...", "for (const auto& x : xs) {}"),
                            ("f([](int) { ... }, {...});", "f([](int) {}, {});"),
                            ('print("...");   // and so on ...', 'print("...");   // and so on ...')):
            self.assertEqual(examples_in_comments.completed(line), whole)

    def test_example_whose_lines_were_run_together(self):
        self.write("cohort/cohort.h", '#include "cohort/core/a.h"\n')
        self.write("cohort/core/a.h", "//   f({1, 2);\n#pragma once\n")
        offences, sources = examples_in_comments.collect(self.root, {})
        self.assert_offence(offences, "cohort/core/a.h:1", "brackets")
        self.assertEqual(sources, [])

    def test_parts_of_a_page(self):
        page = ("```cpp\n#include <cohort/cohort.h>\nnamespace tf = cohort;\n```\n"
                "<!-- given: #include <map>\nint later; -->\n```cpp\nf(...);\n...\n```\n"
                "<!-- continues -->\n```cpp\ng();\n```\n```cpp\nint main() {}\n```\n")
        self.write("docs/a.md", page)
        (name, program), (_, part) = programs_in_docs.collect(self.root)
        self.assertEqual((name, program), ("docs/a.md:16", '#line 16 "docs/a.md"\nint main() {}\n'))
        self.assertEqual(part.count("#include <map>"), 1)
        *_, last = part.split("int part_")
        for words in ("namespace tf = cohort;", "int later;", "\n;\n", '#line 13 "docs/a.md"\ng();'):
            self.assertIn(words, last)
        self.assertEqual(last.count("{"), last.count("}"))

    def test_header_that_is_left_out_but_gone(self):
        self.write("cohort/cohort.h", "")
        special = examples_in_comments.read_special("cohort/core/gone.h is left out: no code\n")
        self.assert_offence(examples_in_comments.collect(self.root, special)[0], "gone.h")


if __name__ == "__main__":
    unittest.main()

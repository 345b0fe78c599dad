"""docs/reference.md says what constructors, options and functions the headers have. --write makes it so.

The page lists the classes of the headers below with their constructors and functions, every struct of
options with its fields in the order in which C++ wants them, and what the functions return. Nothing on it
is written by hand. Each public header that declares something for programs has its section.
"""

import re
import sys
import textwrap
from pathlib import Path

import declarations
import includes
import tree

PAGE = "docs/reference.md"
INTRO = """# Reference

Everything that `<cohort/cohort.h>` offers: what can be said about layers, losses, metrics, optimizers and the calls of
training, in the order in which C++ wants it (`layers::Conv2D(32, 3, {.strides = 2, .activation = "relu"})`: fields may
be left out, but not change places; the type of what is in braces is named beside it), and each class's functions with
what they return. Types stand without `std::`, `const` and `&`. An `Operand` is a tensor, a variable or a number. The
test run compares this page with the headers (`tests/checks/reference.py --write` makes it anew) and fails where a
public header or name is missing here.
"""
# Title, namespace, headers below cohort/ in this order. Two in one string: a header, and that of its
# options, which are told where they are taken.
SECTIONS = [
    ("Layers", "keras::layers", [
        "keras/layers/dense.h", "keras/layers/convolution/conv1d.h", "keras/layers/convolution/conv2d.h",
        "keras/layers/convolution/conv3d.h", "keras/layers/convolution/conv1d_transpose.h",
        "keras/layers/convolution/conv2d_transpose.h", "keras/layers/convolution/conv3d_transpose.h",
        "keras/layers/convolution/depthwise_conv.h", "keras/layers/convolution/separable_conv.h",
        "keras/layers/convolution/pooling1d.h", "keras/layers/convolution/pooling2d.h",
        "keras/layers/convolution/pooling3d.h", "keras/layers/convolution/margin_layers.h",
        "keras/layers/convolution/margins.h", "keras/layers/convolution/up_sampling.h", "keras/layers/embedding.h",
        "keras/layers/recurrent/recurrent.h", "keras/layers/recurrent/bidirectional.h", "keras/layers/masking.h",
        "keras/layers/recurrent/rnn.h", "keras/layers/recurrent/rnn_cells.h",
        "keras/layers/recurrent/abstract_rnn_cell.h", "keras/layers/recurrent/time_distributed.h",
        "keras/layers/attention/additive_attention.h", "keras/layers/attention/attention.h",
        "keras/layers/attention/einsum_dense.h", "keras/layers/attention/multi_head_attention.h",
        "keras/layers/batch_normalization.h", "keras/layers/layer_normalization.h",
        "keras/layers/group_normalization.h",
        "keras/layers/normalization.h", "keras/layers/dropout.h", "keras/layers/noise.h", "keras/layers/elementwise.h",
        "keras/layers/activation_layers.h", "keras/layers/prelu.h",
        "keras/layers/lambda.h", "keras/layers/merging.h", "keras/layers/dot.h", "keras/layers/reshaping.h",
        "keras/layers/lookup/string_lookup.h", "keras/layers/lookup/integer_lookup.h",
        "keras/layers/lookup/text_vectorization.h", "keras/layers/images/resizing.h",
        "keras/layers/images/random_flip.h", "keras/layers/images/random_transforms.h keras/layers/images/factor.h",
        "keras/layers/images/random_colors.h", "keras/layers/images/augmentation.h",
        "keras/layers/preprocessing/hashing.h",
        "keras/layers/preprocessing/hashed_crossing.h", "keras/layers/preprocessing/discretization.h",
        "keras/layers/preprocessing/category_encoding.h", "keras/layers/preprocessing/adapt_options.h",
        "keras/layers/lookup/vocabulary.h", "keras/base/window.h", "keras/layers/base/layer_handle.h"]),
    ("Activations", "keras::activations", ["keras/base/activations.h"]),
    ("Initializers", "keras::initializers", ["keras/base/initializers.h"]),
    ("Regularizers", "keras::regularizers", ["keras/base/regularizers.h"]),
    ("Constraints", "keras::constraints", ["keras/base/constraints.h"]),
    ("A layer of your own", "keras::layers", ["keras/layers/base/layer.h", "keras/base/list.h"]),
    ("Models", "keras", ["keras/layers/base/symbolic.h", "keras/model/sequential.h", "keras/model/functional.h",
                         "keras/model/model.h", "keras/torch_model.h", "keras/saving/models.h", "keras/base/config.h"]),
    ("compile, fit, evaluate, predict", "keras", [
        "keras/model/compile_options.h", "keras/model/fit_options.h", "keras/model/data.h",
        "keras/model/logs.h", "keras/model/per_output.h"]),
    ("Losses", "keras::losses", [
        "keras/losses/crossentropy.h", "keras/losses/focal.h", "keras/losses/regression.h", "keras/losses/hinges.h",
        "keras/losses/divergences.h", "keras/losses/loss.h", "keras/losses/functions.h",
        "keras/losses/get.h"]),
    ("Metrics", "keras::metrics", [
        "keras/metrics/mean.h", "keras/metrics/mean_tensor.h", "keras/metrics/accuracy.h",
        "keras/metrics/auc.h", "keras/metrics/best_threshold.h", "keras/metrics/confusion.h",
        "keras/metrics/f_score.h", "keras/metrics/r2_score.h",
        "keras/metrics/iou.h", "keras/metrics/errors.h", "keras/metrics/prediction_metric.h",
        "keras/metrics/custom_metric.h", "keras/metrics/metric.h", "keras/metrics/metric_result.h",
        "keras/metrics/get.h"]),
    ("Optimizers", "keras::optimizers", [
        "keras/optimizers/optimizer.h", "keras/optimizers/optimizer_options.h",
        "keras/optimizers/optimizers.h"]),
    ("Mixed precision", "keras::mixed_precision", [
        "keras/base/policy.h", "keras/optimizers/loss_scale_optimizer.h"]),
    ("A rule of an optimizer", "optim", ["optim/update_rule.h"]),
    ("Schedules", "keras::optimizers::schedules", ["optim/schedule.h", "optim/decays.h"]),
    ("Callbacks", "keras::callbacks", [
        "keras/model/callback.h", "keras/model/callback_list.h",
        "keras/callbacks/early_stopping.h", "keras/callbacks/model_checkpoint.h",
        "keras/callbacks/backup_and_restore.h", "keras/callbacks/tensor_board.h",
        "keras/callbacks/learning_rate.h", "keras/callbacks/csv_logger.h",
        "keras/callbacks/terminate_on_nan.h", "keras/callbacks/lambda_callback.h",
        "keras/training/progbar_logger.h", "keras/callbacks/save_freq.h"]),
    ("Utilities and data of Keras", "keras", [
        "keras/utils.h", "keras/base/backend.h", "keras/sidecar_evaluator.h", "keras/datasets/image_dataset.h",
        "keras/datasets/mnist.h", "keras/datasets/fashion_mnist.h", "keras/datasets/synthetic_images.h",
        "keras/datasets/directory_dataset.h", "keras/datasets/image_dataset_from_directory.h",
        "keras/datasets/text_dataset_from_directory.h",
        "keras/datasets/timeseries_dataset.h", "keras/datasets/pad_sequences.h"]),
    ("Programs", "cohort", [
        "core/program/run_program.h", "core/error.h", "core/errors.h", "core/program/interrupt.h", "core/observe/logging.h",
        "core/traceback.h", "core/program/memory.h", "core/observe/monitoring.h", "core/structure/device.h", "core/structure/device_settings.h",
        "core/program/task_id.h"]),
    ("The profiler", "profiler", ["core/profiler/profiler.h core/profiler/profile.h"]),
    ("Tensors and elements", "cohort", [
        "core/structure/tensor.h", "core/structure/string_tensor.h", "core/structure/ragged_tensor.h", "core/structure/sparse_tensor.h", "core/structure/structure.h",
        "core/structure/unpack.h", "core/structure/leaf_type.h", "core/structure/spec.h", "core/structure/optional.h", "core/function_ref.h"]),
    ("Operations", "cohort", [
        "ops/make_tensor.h", "ops/literal.h", "ops/tensor_ops.h", "ops/reduce.h", "ops/nn_ops.h",
        "ops/ctc.h", "ops/clip.h", "ops/indexed_slices.h", "keras/base/zip.h", "distribute/step/print.h"]),
    ("Random numbers", "random", ["ops/random.h ops/random_options.h", "ops/sampling/stateless_random.h",
        "ops/sampling/candidate_sampler.h"]),
    ("Lookup tables", "lookup", ["ops/lookup/static_hash_table.h", "ops/lookup/initializers.h"]),
    ("Variables, tapes, averages", "cohort", [
        "distribute/core/variable_spec.h", "optim/constraint.h", "distribute/variables/variable.h", "distribute/variables/variable_creator.h",
        "distribute/variables/variable_operators.h", "ops/gradient_tape.h", "distribute/step/nn.h"]),
    ("Datasets", "data", ["data/dataset.h", "data/dataset_iterator.h", "data/files/csv_columns.h data/files/csv_dataset.h",
                          "data/files/make_csv_dataset.h", "data/files/make_batched_features_dataset.h",
                          "data/files/record_dataset_options.h", "data/files/tfrecord_dataset.h",
                          "data/files/text_line_dataset.h", "data/files/fixed_length_record_dataset.h", "data/paths.h",
                          "data/generator.h", "data/torch_dataset.h", "data/window.h",
                          "data/options.h", "data/sharding/auto_shard.h", "data/sharding/batch_sizes.h",
                          "data/sharding/split_batches.h", "data/graph/cardinality.h", "data/ragged_batch.h", "data/reducer.h",
                          "data/iteration/state.h", "data/iter.h"]),
    ("Records and examples", "io", [
        "data/records/tfrecord_writer.h", "data/records/example_builder.h",
        "data/files/parse_example.h data/files/example_features.h",
        "data/files/parse_sequence_example.h"]),
    ("Images", "image", ["image/resize.h", "image/crop.h", "image/flip.h", "image/transform.h", "image/color.h",
                         "image/random_image.h", "image/jpeg_quality.h"]),
    ("Files of images", "io", ["image/decode.h", "image/encode.h"]),
    ("Transforms", "transform", [
        "transform/output/analyze.h", "transform/output/transform_output.h", "transform/graph/column.h",
        "transform/functions/mappers.h", "transform/functions/analyzers.h",
        "transform/functions/column_functions.h", "transform/graph/mapped_function.h"]),
    ("Strategies", "distribute", [
        "distribute/strategies/strategy.h", "distribute/core/run_options.h",
        "distribute/core/step_graphs.h", "distribute/values/reduce_axis.h",
        "distribute/strategies/replica_context.h", "distribute/input/distributed_dataset.h",
        "distribute/strategies/get_distributed_dataset.h", "distribute/input/distributed_iterator.h",
        "distribute/strategies/mirrored_strategy.h", "distribute/strategies/one_device_strategy.h",
        "distribute/strategies/central_storage_strategy.h",
        "distribute/strategies/multi_worker_mirrored_strategy.h",
        "collective/communication_options.h", "distribute/step/scope.h", "distribute/strategies/context.h",
        "distribute/values/values.h", "distribute/input/input_context.h",
        "distribute/core/input_options.h", "distribute/core/input_workers.h",
        "distribute/strategies/ordered_results.h", "distribute/step/function.h",
        "distribute/strategies/strategy_extended.h", "distribute/step/regroup.h",
        "distribute/reduce/cross_device_ops.h", "distribute/reduce/all_reduce_ops.h",
        "distribute/reduce/reduction_to_one_device.h", "distribute/strategies/legacy.h"]),
    ("Parameter servers", "distribute", [
        "parameter_server/parameter_server_strategy.h", "parameter_server/variables/partitioner.h", "parameter_server/variables/sharded_variable.h",
        "parameter_server/variables/variable_placement.h",
        "parameter_server/variables/embedding_lookup.h",
        "parameter_server/variables/sampled_loss.h", "parameter_server/variables/cached_reads.h"]),
    ("The coordinator", "distribute::coordinator", [
        "parameter_server/cluster_coordinator.h", "parameter_server/coordinator/coordinator_options.h", "cluster/rpc/coordinator_errors.h"]),
    ("Clusters", "distribute", [
        "cluster/server.h cluster/server_options.h", "cluster/coordination.h", "distribute/tasks/named_functions.h",
        "cluster/security/credentials.h", "cluster/rpc/error_detail.h", "cluster/cluster_spec.h",
        "distribute/preemption/preemption_checkpoint_handler.h", "distribute/preemption/termination_config.h"]),
    ("Resolvers", "distribute::cluster_resolver", [
        "cluster/cluster_resolver.h",
        *(f"cluster/resolvers/{name}_cluster_resolver.h" for name in (
            "default", "simple", "tf_config", "torchrun", "mpi", "slurm", "kubernetes", "gce", "union"))]),
    ("Checkpoints", "train", ["train/checkpoint.h train/saving/checkpoint_options.h", "train/checkpoint_manager.h", "train/checkpoint_reader.h",
        "train/checkpoint_status.h", "train/checkpoints_iterator.h", "train/safetensors/safetensors.h",
        "train/bundle/tensor_slice.h", "train/objects/save_group.h", "train/objects/trackable.h"]),
    ("Moving averages", "train", ["distribute/strategies/exponential_moving_average.h"]),
    ("Summaries", "summary", ["train/summary/summary_writer.h", "train/summary/summary.h", "train/summary/trace.h"]),
]
FIELD = re.compile(r"^  ([\w:<>, .*&()]+?) (\w+)(?: = (.+?)|\{(.*?)\})?;(?: +// (.*))?$")


# Functions for the library's own use.
INTERNAL = ["begin", "checkpoint_children", "child_appeared", "components", "core", "describe", "end",
            "get", "group", "impl", "local", "merge", "named_functions", "node", "operator", "output",
            "pointer", "pop_child", "reader", "source", "source_", "state_of", "trackable", "view"]


def joined(text):
    """Lines of declarations that clang-format has broken, whole."""
    text = re.sub(r"(?<=[,(])  // [^\n]*", "", text)
    return re.sub(r"(?<![;{}])\n {4,}(?=[\w\"{(])", " ", text).replace("( ", "(")


def structs(text):
    """(name, [(field, default, comment)]) of each struct that holds options."""
    for _, members in declarations.public_namespaces(text):
        for declaration in members:
            kind, name = declarations.type_name(declaration.head) or ("", "")
            if kind == "struct" and name.endswith(("Options", "Functions")) and declaration.body:
                fields, comment = [], None
                for member in declarations.scan(declaration.body):
                    if declarations.function(member.head):
                        continue
                    field = FIELD.match(f"  {member.head};")
                    if field and "operator" not in member.head:
                        name_of, default, braced = field.groups()[1:4]
                        of_it = "" if member.comment is comment else " ".join(member.comment)
                        fields.append((name_of, default or braced, member.note or of_it))
                        comment = member.comment
                    elif "operator" not in member.head:
                        sys.exit(f"{name}: cannot read {member.head!r}")
                if fields:
                    yield name, fields


def constructors(name, body):
    """The arguments of each public constructor, without those that copy."""
    public = re.split(r"^ (?:private|protected):", joined(body), flags=re.MULTILINE)[0]
    for line in public.split("\n"):
        found = re.match(rf" +(?:explicit )?{name}\((.*)", line)
        if not found:
            continue
        depth, arguments = 1, ""
        for letter in found.group(1):
            depth += {"(": 1, ")": -1}.get(letter, 0)
            if depth == 0:
                break
            arguments += letter
        arguments = re.sub(r" // [^{]*?(?= \w+Options|$)", "", arguments)
        internal = "impl)" in line or "= delete" in line or "internal" in arguments or "Node>" in arguments
        if not internal and not re.search(rf"\b{name}\s*&", arguments):
            yield arguments


def classes(text):
    """(name, the comment above it, its constructors) of each public class that programs make."""
    pattern = r"((?:^// [^\n]*\n)*)(?:^template [^\n]*\n)?^class (?:COHORT_API |\[\[\w+\]\] )*(\w+)[^;{<]*\{\n public:\n(.*?)^\};"
    for comment, name, body in re.findall(pattern, text, re.MULTILINE | re.DOTALL):
        made = list(constructors(name, body))
        if made:
            yield name, " ".join(line[3:] for line in comment.strip().split("\n") if line), made


def grouped(listed):
    """[(the comment above, [(what is declared, the comment behind it)])] of neighbours under one comment."""
    groups = []
    for declaration, shown in listed:
        if not groups or groups[-1][0] is not declaration.comment:
            groups.append((declaration.comment, []))
        groups[-1][1].append((shown, declaration.note))
    return groups


def callable_ones(members, name=""):
    """[(declaration, text of the call)] of the functions that a program calls or overrides."""
    found, hidden = [], False
    for member in members:
        if member.body is None and member.head in ("public:", "private:", "protected:"):
            hidden = member.head == "private:"
        elif declarations.type_name(member.head) and "(" not in member.head:
            continue
        elif (function := declarations.function(member.head)) and not hidden:
            own = function.name in INTERNAL or function.name.endswith("_erased")
            if (own or function.name.strip("~") == name or " = delete" in " " + function.rest
                    or "override" in function.rest
                    or " ".join(member.comment).startswith("For the library's own use")):
                continue
            found.append((member, f"{function.result} {function.name}({function.arguments})"))
    return found


def first_sentence(words):
    found = re.match(r"(.+?(?<!\.)[.:])(?= [A-Z0-9]|$)", words)
    said = (found.group(1) if found else words).rstrip(".:")
    return "" if said.startswith(("Errors", "See ", "Thread safety")) else said


def index_of(calls, known, listed):
    """The lines that list functions, with what they take and return."""
    lines = []
    for comment, group in grouped(calls):
        shown, told = [], []
        for call, note in group:
            for options, fields in known.items():
                taken = rf"(?:(?<=\()|(?<=, ))(const )?{options}&? \w+( = \{{\}})?(?=[,)])"
                if re.search(taken, call):
                    if options not in listed:
                        note = "; ".join(filter(None, [f"`{options}`", note]))
                        told += notes(fields)
                    listed.add(options)
                    call = re.sub(taken, lambda _: in_braces(fields), call)
            text = f"`{plain(call)}`" + (f" ({note})" if note else "")
            if text not in shown:
                shown.append(text)
        said = first_sentence(" ".join(comment))
        lines.append("- " + ", ".join(shown) + (f": {said}" if said else ""))
        lines += ["  " + line for line in told]
    return lines


def fields_of(members):
    """The lines that list what a struct holds."""
    heads = [member.head for member in members]
    end = heads.index("private:") if "private:" in heads else None
    public = [member for member in members[:end]
              if "(" not in member.head.split("=")[0] and not declarations.type_name(member.head)
              and not re.match(r"using|friend|static|public:|template|.*operator", member.head)]
    lines = []
    for comment, group in grouped((member, plain(member.head)) for member in public):
        shown = ", ".join(f"`{text}`" + (f" ({note})" if note else "") for text, note in group)
        said = first_sentence(" ".join(comment))
        lines.append(f"- {shown}" + (f": {said}" if said else ""))
    return lines


def prefix(namespace, within):
    """What a name in `namespace` begins with, seen from `within`."""
    inner = namespace.removeprefix(within).removeprefix("::") if namespace != within else ""
    return plain_namespace(inner) + "::" if inner else ""


def type_lines(declaration, inner, known, listed):
    """What a class, struct or enum is, and has."""
    kind, name = declarations.type_name(declaration.head)
    shown = inner + name
    comment = first_sentence(" ".join(declaration.comment))
    if kind.startswith("enum"):
        members = " ".join(tree.without_comments(declaration.body).split()).rstrip(",")
        return [f"`enum {shown} {{{members}}}`" + (f": {comment}" if comment else ""), ""]
    if name in known:
        return []
    members = declarations.scan(declaration.body)
    if kind == "class":
        members = [declarations.Declaration([], "private:", None, "")] + members
    told = index_of(callable_ones(members, name), known, listed)
    told = (fields_of(members) if kind == "struct" else []) + told
    about = f"`{shown}`" + (f" ({comment[0].lower() + comment[1:]})" if comment and kind == "struct" else "")
    if not told:
        return [f"`{shown}`" + (f": {comment}" if comment else ""), ""]
    return [f"{about} has", "", *told, ""]


def second_names(namespace, members):
    """One line for what a namespace takes over from another."""
    names = [match.group(1) for member in members
             if (match := re.match(r"using (?:\w+::)+(\w+)$", member.head))]
    if not names or namespace == "cohort":
        return []
    return [f"In `{plain_namespace(namespace)}`, too: " + ", ".join(f"`{name}`" for name in names), ""]


def plain_namespace(namespace):
    return re.sub(r"^cohort::", "", namespace)


def plain(text):
    """Types and defaults as a program writes them."""
    text = re.sub(r"\s+", " ", text or "{}")
    return re.sub(r"\b(std|internal|at|c10)::|\bconst |&(?=[ ,)]|$)", "", text).replace("nullopt", "{}")


def in_braces(fields):
    return "{" + ", ".join(f".{name} = {plain(default)}" for name, default, _ in fields) + "}"


def wrapped(text):
    """Lines that break between arguments alone."""
    kept = re.sub(r" (?!\.)(?=[^,]*[,}])", "\0", text)
    return [line.replace("\0", " ") for line in
            textwrap.wrap(kept, 108, subsequent_indent="    ", break_long_words=False,
                          break_on_hyphens=False)]


def notes(fields):
    """What the headers say about single fields."""
    return [f"- `{name}`: {words}" for name, _, words in fields if words and words[:4] != "See "]


def entry(text, within):
    """The lines of one header, whose names are in namespace `within` unless they say so."""
    lines, known, listed = [], dict(structs(text)), set()
    spaces = {(declarations.type_name(member.head) or ("", ""))[1]: namespace
              for namespace, members in declarations.public_namespaces(text)
              for member in members if member.body is not None}
    for name, comment, made in classes(text):
        if name not in spaces:  # the library's own
            continue
        inner = prefix(spaces[name], within)
        lines += ["```cpp"]
        told, named = [], []
        for arguments in made:
            for options, fields in known.items():
                taken = rf"(const )?\b{options}&? \w+( = \{{\}})?"
                if not re.search(taken, arguments):
                    continue
                # Told once, where the class is made with all of them.
                arguments = re.sub(taken, lambda _: in_braces(fields), arguments)
                if options not in listed:
                    named.append(f"`{options}`")
                    told += notes(fields)
                listed.add(options)
            lines += wrapped(f"{inner}{name}({plain(arguments) if arguments else ''})")
        said = first_sentence(comment) + (f" ({', '.join(named)})" if named else "")
        lines += ["```", "", said.strip(), ""]
        lines += [*told, ""] if told else []
    made = {name for name, _, _ in classes(text)}
    for namespace, members in declarations.public_namespaces(text):
        for declaration in members:
            if declarations.type_name(declaration.head) and declaration.body is not None:
                told = type_lines(declaration, prefix(namespace, within), known, listed)
                name = declarations.type_name(declaration.head)[1]
                lines += told if len(told) > 2 or name not in made else []
        functions = [member for member in members if not declarations.type_name(member.head)]
        told = index_of(callable_ones(functions), known, listed)
        inner = prefix(namespace, within)
        lines += [*(f"- in `{inner}`: {line[2:]}" if inner and line.startswith("- ") else line
                    for line in told), ""]
        lines += second_names(namespace, members)
    for options, fields in known.items():
        if options not in listed:
            lines += ["```cpp", *wrapped(f"{options} {in_braces(fields)}"), "```", ""]
            lines += [*notes(fields), ""] if notes(fields) else []
    return [line for i, line in enumerate(lines) if line or i == 0 or lines[i - 1]]


def page(root):
    lines = [INTRO]
    for title, namespace, headers in SECTIONS:
        lines += [f"## {title}", "", f"Namespace `{namespace}`.", ""]
        within = "cohort" if namespace == "cohort" else f"cohort::{namespace}"
        for header in headers:
            texts = [(root / "cohort" / part).read_text() for part in header.split()]
            lines += entry("\n".join(texts), within)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip("\n") + "\n"


def left_out(root):
    """Public headers that declare something for programs, and stand in no section."""
    shown = {f"cohort/{part}" for _, _, headers in SECTIONS for header in headers
             for part in header.split()}
    for header in sorted(includes.public_headers(root) - shown):
        for _, members in declarations.public_namespaces((root / header).read_text()):
            if any((declarations.type_name(member.head) and member.body is not None)
                   or declarations.function(member.head) for member in members):
                yield header
                break


def main(root=tree.ROOT, *flags):
    path = Path(root) / PAGE
    missing = list(left_out(Path(root)))
    if missing:
        sys.exit(f"tests/checks/reference.py has no section for {', '.join(missing)}")
    text = page(Path(root))
    if "--write" in flags:
        path.write_text(text)
    elif not path.exists() or path.read_text() != text:
        sys.exit(f"{PAGE} is not what the headers say; run tests/checks/reference.py . --write")
    print("clean")


if __name__ == "__main__":
    main(*sys.argv[1:])

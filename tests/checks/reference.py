"""docs/reference.md says what constructors and options the headers have. --write makes it so.

The page lists the classes of the headers below with their constructors, and every struct of options
with its fields in the order in which C++ wants them. Nothing on it is written by hand.
"""

import re
import sys
import textwrap
from pathlib import Path

import tree

PAGE = "docs/reference.md"
INTRO = """# Constructors and options

What can be said about layers, losses, metrics, optimizers and the calls of training, in the order in which C++
wants it: `layers::Conv2D(32, 3, {.strides = 2, .activation = "relu"})`. Fields may be left out, but not change
places. The test run compares this page with the headers (`tests/checks/reference.py --write` makes it anew).
"""
# Title, namespace, headers below cohort/ in this order.
SECTIONS = [
    ("Layers", "keras::layers", [
        "keras/layers/dense.h", "keras/layers/conv1d.h", "keras/layers/conv2d.h",
        "keras/layers/conv2d_transpose.h",
        "keras/layers/pooling1d.h", "keras/layers/pooling2d.h", "keras/layers/embedding.h",
        "keras/layers/recurrent.h", "keras/layers/bidirectional.h", "keras/layers/masking.h",
        "keras/layers/multi_head_attention.h",
        "keras/layers/batch_normalization.h", "keras/layers/layer_normalization.h",
        "keras/layers/normalization.h", "keras/layers/dropout.h", "keras/layers/elementwise.h",
        "keras/layers/activation_layers.h",
        "keras/layers/lambda.h", "keras/layers/merging.h", "keras/layers/dot.h", "keras/layers/reshaping.h",
        "keras/layers/string_lookup.h", "keras/layers/integer_lookup.h",
        "keras/layers/text_vectorization.h"]),
    ("A layer of your own", "keras::layers", ["keras/layers/layer.h"]),
    ("Models", "keras", ["keras/layers/symbolic.h", "keras/sequential.h", "keras/functional.h",
                         "keras/model.h", "keras/torch_model.h"]),
    ("compile, fit, evaluate, predict", "keras", [
        "keras/training/compile_options.h", "keras/training/fit_options.h"]),
    ("Losses", "keras::losses", [
        "keras/losses/crossentropy.h", "keras/losses/regression.h", "keras/losses/hinges.h",
        "keras/losses/divergences.h"]),
    ("Metrics", "keras::metrics", [
        "keras/metrics/mean.h", "keras/metrics/mean_tensor.h", "keras/metrics/accuracy.h",
        "keras/metrics/auc.h", "keras/metrics/best_threshold.h", "keras/metrics/confusion.h",
        "keras/metrics/iou.h", "keras/metrics/errors.h", "keras/metrics/prediction_metric.h",
        "keras/metrics/custom_metric.h", "keras/metrics/metric.h"]),
    ("Optimizers", "keras::optimizers", [
        "keras/optimizers/optimizer.h", "keras/optimizers/optimizers.h"]),
    ("Schedules", "keras::optimizers::schedules", ["optim/schedule.h", "optim/decays.h"]),
    ("Callbacks", "keras::callbacks", [
        "keras/callbacks/callback.h",
        "keras/callbacks/early_stopping.h", "keras/callbacks/model_checkpoint.h",
        "keras/callbacks/backup_and_restore.h", "keras/callbacks/tensor_board.h",
        "keras/callbacks/learning_rate.h", "keras/callbacks/csv_logger.h",
        "keras/callbacks/terminate_on_nan.h", "keras/callbacks/lambda_callback.h"]),
    ("Variables, tapes, averages", "cohort", [
        "distribute/variable_spec.h", "distribute/variable.h", "ops/gradient_tape.h", "distribute/nn.h"]),
    ("Datasets", "data", ["data/dataset.h", "data/dataset_iterator.h", "data/csv_dataset.h",
                          "data/record_dataset_options.h"]),
    ("Strategies", "distribute", [
        "distribute/strategy.h", "distribute/replica_context.h", "distribute/distributed_dataset.h",
        "distribute/distributed_iterator.h",
        "distribute/mirrored_strategy.h", "distribute/one_device_strategy.h",
        "distribute/central_storage_strategy.h", "distribute/multi_worker_mirrored_strategy.h"]),
    ("Checkpoints", "train", ["train/checkpoint.h", "train/checkpoint_manager.h", "train/checkpoint_reader.h"]),
]
FIELD = re.compile(r"^  ([\w:<>, .*&()]+?) (\w+)(?: = (.+?)|\{(.*?)\})?;(?: +// (.*))?$")


# Classes whose functions are listed, too.
CALLS = ["Dataset", "DatasetIterator", "Strategy", "ReplicaContext", "Variable", "GradientTape",
         "DistributedDataset", "DistributedIterator", "Layer", "Model", "ModelHandle", "Sequential",
         "Metric", "PredictionMetric", "Optimizer", "Callback", "TextVectorization", "StringLookup",
         "Normalization", "TorchModel", "Checkpoint", "CheckpointManager", "SummaryWriter"]

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
    for name, body in re.findall(r"^struct (\w+) \{\n(.*?)^\};", text, re.MULTILINE | re.DOTALL):
        if not name.endswith(("Options", "Functions")):
            continue
        fields, comment = [], []
        for line in joined(body).split("\n"):
            if line.startswith("  // "):
                comment.append(line[5:])
                continue
            field = FIELD.match(line)
            if field and "operator" not in line:
                name_of, default, braced, words = field.groups()[1:]
                fields.append((name_of, default or braced, words or " ".join(comment)))
                comment = []
            elif line.rstrip().endswith(";"):
                sys.exit(f"{name}: cannot read {line!r}")
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
        internal = "impl)" in line or "internal" in arguments or "Node>" in arguments
        if not internal and not re.search(rf"\b{name}\s*&", arguments):
            yield arguments


def bodies(text):
    """{class: its body} of the public classes."""
    pattern = r"^class COHORT_API (\w+)[^;{]*\{\n public:\n(.*?)^\};"
    return dict(re.findall(pattern, text, re.MULTILINE | re.DOTALL))


def classes(text):
    """(name, the comment above it, its constructors) of each public class that programs make."""
    pattern = r"((?:^// [^\n]*\n)*)(?:^template [^\n]*\n)?^class COHORT_API (\w+)[^;{]*\{\n public:\n(.*?)^\};"
    for comment, name, body in re.findall(pattern, text, re.MULTILINE | re.DOTALL):
        made = list(constructors(name, body))
        if made:
            yield name, " ".join(line[3:] for line in comment.strip().split("\n") if line), made


def until_closed(text):
    """What stands before the parenthesis that ends the arguments."""
    depth = 1
    for i, letter in enumerate(text):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth == 0:
            return text[:i]
    return text


def calls(name, body):
    """[(the comment above, [call])] of the functions that a program calls or overrides."""
    found, comment, group, hidden = [], [], [], False
    for line in joined(body).split("\n"):
        if re.match(r" (private|protected|public):", line):
            hidden = "private" in line
        elif line.startswith("  // "):
            if group:
                found.append((comment, group))
                comment, group = [], []
            comment += [line[5:]] * (not line.startswith("  // ----"))
            continue
        line = re.sub(r"^  requires\(.*?\) (?=\w+ \w+\()", "  ", line)
        if match := re.match(r"  (?! )(?:(?:explicit|static|virtual|inline) )*[\w:<>, *&]*?[ &*](\w+)\(",
                               line):
            call = match.group(1)
            if (call == name or call in INTERNAL or call.endswith("_erased") or hidden
                    or "= delete" in line):
                comment = comment if group else []
                continue
            group.append(f"{call}({until_closed(line[match.end():])})")
        elif not line.strip() or line.startswith("  }"):
            found += [(comment, group)] * bool(group)
            comment, group = [], []
    return found + ([(comment, group)] if group else [])


def first_sentence(words):
    found = re.match(r"(.+?(?<!\.)[.:])(?= [A-Z0-9]|$)", words)
    said = (found.group(1) if found else words).rstrip(".:")
    return "" if said.startswith(("Errors", "See ", "Thread safety")) else said


def index_of(name, body, known, listed):
    """The lines that list the functions of a class, with what they take."""
    lines = []
    for comment, group in calls(name, body):
        shown, told = [], []
        for call in group:
            for options, fields in known.items():
                taken = rf"(const )?\b{options}&? \w+( = \{{\}})?"
                if re.search(taken, call):
                    told += notes(fields) if options not in listed else []
                    listed.add(options)
                    call = re.sub(taken, lambda _: in_braces(fields), call)
            if f"`{plain(call)}`" not in shown:
                shown.append(f"`{plain(call)}`")
        said = first_sentence(" ".join(comment))
        lines.append("- " + ", ".join(shown) + (f": {said}" if said else ""))
        lines += ["  " + line for line in told]
    return lines


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


def entry(text):
    """The lines of one header."""
    lines, known, listed = [], dict(structs(text)), set()
    for name, comment, made in classes(text):
        lines += ["```cpp"]
        told = []
        for arguments in made:
            for options, fields in known.items():
                taken = rf"(const )?\b{options}&? \w+( = \{{\}})?"
                if not re.search(taken, arguments):
                    continue
                # Told once, where the class is made with all of them.
                arguments = re.sub(taken, lambda _: in_braces(fields), arguments)
                told += notes(fields) if options not in listed else []
                listed.add(options)
            lines += wrapped(f"{name}({plain(arguments) if arguments else ''})")
        lines += ["```", "", first_sentence(comment), ""]
        lines += [*told, ""] if told else []
    for name, body in bodies(text).items():
        if name in CALLS:
            told = index_of(name, body, known, listed)
            lines += [f"`{name}` has", "", *told, ""] if told else []
    for options, fields in known.items():
        if options not in listed:
            lines += ["```cpp", *wrapped(f"{options} {in_braces(fields)}"), "```", ""]
            lines += [*notes(fields), ""] if notes(fields) else []
    return [line for i, line in enumerate(lines) if line or i == 0 or lines[i - 1]]


def page(root):
    lines = [INTRO]
    for title, namespace, headers in SECTIONS:
        lines += [f"## {title}", "", f"Namespace `{namespace}`.", ""]
        for header in headers:
            lines += entry((root / "cohort" / header).read_text())
    return "\n".join(lines).rstrip("\n") + "\n"


def main(root=tree.ROOT, *flags):
    path = Path(root) / PAGE
    text = page(Path(root))
    if "--write" in flags:
        path.write_text(text)
    elif not path.exists() or path.read_text() != text:
        sys.exit(f"{PAGE} is not what the headers say; run tests/checks/reference.py . --write")
    print("clean")


if __name__ == "__main__":
    main(*sys.argv[1:])

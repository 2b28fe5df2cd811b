#include "clients/cli/tree_view.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace grove::cli {
namespace {

const std::string& IdOf(const v1::TreeNode& node) { return node.has_idea() ? node.idea().id() : node.kernel().id(); }

// Where a node hangs, in order of preference; empty = at the top.
const std::string& ParentOf(const v1::TreeNode& node) {
  if (node.has_idea()) return node.idea().parent();
  const v1::KernelNode& kernel = node.kernel();
  if (!kernel.repaired_from().empty()) return kernel.repaired_from();
  if (!kernel.idea().empty()) return kernel.idea();
  return kernel.parent();
}

std::string KernelLabel(const v1::KernelNode& kernel, const TreeOptions& options) {
  const Style& style = options.style;
  std::string line = style.Bold(ShortId(kernel.id()));
  if (!kernel.repaired_from().empty()) {
    absl::StrAppend(&line, " (repair ", std::max(1, kernel.repair_of_attempt()), ")");
  } else if (kernel.idea().empty() && !kernel.candidate().name().empty()) {
    absl::StrAppend(&line, " ", OneLine(kernel.candidate().name()));
  }
  if (!kernel.bank_origin().empty()) absl::StrAppend(&line, " (bank ", OneLine(kernel.bank_origin()), ")");
  absl::StrAppend(&line, "  ", KernelOutcome(kernel, style));
  if (kernel.id() == options.best) absl::StrAppend(&line, "  ", style.Green("best"));
  if (kernel.survivor()) absl::StrAppend(&line, "  ", style.Dim(kernel.explored() ? "kept to explore" : "kept"));
  return line;
}

std::string IdeaLabel(const v1::IdeaNode& idea, const TreeOptions& options) {
  const Style& style = options.style;
  std::string line = absl::StrCat(style.Bold(ShortId(idea.id())), " ",
                                  OneLine(idea.title().empty() ? idea.description() : idea.title()));
  if (!idea.category().empty()) absl::StrAppend(&line, style.Dim(absl::StrCat(" (", OneLine(idea.category()), ")")));
  if (idea.credit() > 0) absl::StrAppend(&line, absl::StrFormat("  %.3gx over its parent", idea.credit()));
  if (idea.state() == v1::NODE_STATE_REFUTED) absl::StrAppend(&line, "  ", style.Yellow("refuted"));
  if (idea.state() == v1::NODE_STATE_ABANDONED) absl::StrAppend(&line, "  ", style.Yellow("abandoned"));
  return line;
}

}  // namespace

std::string KernelOutcome(const v1::KernelNode& kernel, const Style& style) {
  if (kernel.result().verdict() == v1::VERDICT_UNSPECIFIED) {
    if (!kernel.duplicate_of().empty()) return absl::StrCat("same source as ", ShortId(kernel.duplicate_of()));
    if (kernel.state() == v1::NODE_STATE_ABANDONED) return style.Dim("abandoned");
    return style.Dim(kernel.attempt() > 0 ? "running" : "waiting");
  }
  std::string text = style.Verdict(kernel.result().verdict());
  if (const v1::BaselineTiming* timing = RankingTiming(kernel.result())) {
    absl::StrAppend(&text, " ", FormatSpeedup(timing->speedup(), timing->speedup_low(), timing->speedup_high()));
  } else if (!kernel.result().reason().empty()) {
    absl::StrAppend(&text, " ", Fit(OneLine(kernel.result().reason()), 100));
  }
  if (!kernel.duplicate_of().empty()) absl::StrAppend(&text, " (same source as ", ShortId(kernel.duplicate_of()), ")");
  return text;
}

std::string RenderTree(absl::Span<const v1::TreeNode> nodes, const TreeOptions& options) {
  std::unordered_map<std::string, size_t> index;
  for (size_t i = 0; i < nodes.size(); ++i) index.emplace(IdOf(nodes[i]), i);
  std::vector<std::vector<size_t>> children(nodes.size());
  std::vector<size_t> roots;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const auto parent = index.find(ParentOf(nodes[i]));
    if (ParentOf(nodes[i]).empty() || parent == index.end() || parent->second == i) {
      roots.push_back(i);
    } else {
      children[parent->second].push_back(i);
    }
  }
  const Style& style = options.style;
  const char* tee = style.unicode ? "├─ " : "|- ";
  const char* corner = style.unicode ? "└─ " : "`- ";
  const char* bar = style.unicode ? "│  " : "|  ";

  struct Frame {
    size_t node;
    std::string prefix;  // of the node's own line, without its connector
    bool last;
  };
  std::string out;
  std::vector<bool> printed(nodes.size(), false);
  std::vector<Frame> stack;
  const auto print_from = [&](const std::vector<size_t>& tops) {
    for (size_t i = tops.size(); i-- > 0;) stack.push_back({tops[i], "", i + 1 == tops.size()});
    while (!stack.empty()) {
      Frame frame = std::move(stack.back());
      stack.pop_back();
      if (printed[frame.node]) continue;
      printed[frame.node] = true;
      const v1::TreeNode& node = nodes[frame.node];
      std::string line =
          absl::StrCat(frame.prefix, frame.last ? corner : tee,
                       node.has_idea() ? IdeaLabel(node.idea(), options) : KernelLabel(node.kernel(), options));
      absl::StrAppend(&out, options.width > 0 ? Fit(line, options.width) : line, "\n");
      const std::string below = absl::StrCat(frame.prefix, frame.last ? "   " : bar);
      const std::vector<size_t>& under = children[frame.node];
      for (size_t i = under.size(); i-- > 0;) stack.push_back({under[i], below, i + 1 == under.size()});
    }
  };
  print_from(roots);
  // What no root reaches hangs in a loop of parents: a broken tree is still shown whole.
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!printed[i]) print_from({i});
  }
  return out;
}

std::string RenderDot(const std::string& title, absl::Span<const v1::TreeNode> nodes, const std::string& best) {
  const auto quote = [](absl::string_view text) {
    return absl::StrCat("\"", absl::StrReplaceAll(OneLine(text), {{"\\", "\\\\"}, {"\"", "\\\""}}), "\"");
  };
  std::unordered_set<std::string> known;
  for (const v1::TreeNode& node : nodes) known.insert(IdOf(node));
  std::string out = absl::StrCat("digraph grove {\n  rankdir=LR;\n  label=", quote(title),
                                 ";\n  node [fontname=\"sans-serif\"];\n  reference [shape=doublecircle];\n");
  for (const v1::TreeNode& node : nodes) {
    const std::string& id = IdOf(node);
    if (node.has_idea()) {
      absl::StrAppend(&out, "  ", quote(id), " [shape=note, label=",
                      quote(absl::StrCat(ShortId(id), " ", Fit(OneLine(node.idea().title()), 60))), "];\n");
    } else {
      const v1::KernelNode& kernel = node.kernel();
      const v1::Verdict verdict = kernel.result().verdict();
      const char* fill = verdict == v1::VERDICT_CORRECT       ? "palegreen"
                         : verdict == v1::VERDICT_UNSPECIFIED ? "white"
                                                              : "mistyrose";
      absl::StrAppend(
          &out, "  ", quote(id), " [shape=box, style=filled, fillcolor=", fill, id == best ? ", penwidth=3" : "",
          ", label=", quote(absl::StrCat(ShortId(id), " ", Fit(KernelOutcome(kernel, Style()), 60))), "];\n");
    }
    const std::string& parent = ParentOf(node);
    absl::StrAppend(&out, "  ", known.count(parent) > 0 ? quote(parent) : std::string("reference"), " -> ", quote(id),
                    ";\n");
  }
  absl::StrAppend(&out, "}\n");
  return out;
}

}  // namespace grove::cli

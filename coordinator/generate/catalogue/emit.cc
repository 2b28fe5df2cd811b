#include "coordinator/generate/catalogue/emit.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace grove::generate::catalogue {
namespace {

const char* Infix(const std::string& op) {
  if (op == "add") return " + ";
  if (op == "sub") return " - ";
  if (op == "mul") return " * ";
  if (op == "div") return " / ";
  return nullptr;
}

bool IsLeaf(const ExprNode& node) { return node.op == "input" || node.op == "acc"; }

}  // namespace

std::string FloatLiteral(double value) {
  float f = static_cast<float>(value);
  if (std::isnan(f)) return "__builtin_nanf(\"\")";
  if (std::isinf(f)) return f > 0 ? "__builtin_inff()" : "(-__builtin_inff())";
  std::string text = absl::StrFormat("%.9g", f);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return f < 0 || std::signbit(f) ? absl::StrCat("(", text, "f)") : absl::StrCat(text, "f");
}

std::string EmitExpr(const Expr& expr, const std::string& type, const std::string& prefix, const std::string& indent,
                     const std::string& splat, const std::function<std::string(const ExprNode&)>& leaf,
                     std::string* result) {
  std::string out;
  std::vector<std::string> text(expr.nodes.size());
  auto literal = [&](double value) {
    return splat.empty() ? FloatLiteral(value) : absl::StrCat(splat, "(", FloatLiteral(value), ")");
  };
  for (size_t i = 0; i < expr.nodes.size(); ++i) {
    const ExprNode& node = expr.nodes[i];
    if (IsLeaf(node)) {
      text[i] = leaf(node);
      continue;
    }
    if (node.op == "const") {
      text[i] = literal(node.value);
      continue;
    }
    std::string value;
    if (const char* infix = Infix(node.op)) {
      value = absl::StrCat(text[node.args[0]], infix, text[node.args[1]]);
    } else if (node.op == "neg") {
      value = absl::StrCat("-", text[node.args[0]]);
    } else {
      value = absl::StrCat("g_", node.op, "(");
      for (size_t a = 0; a < node.args.size(); ++a) absl::StrAppend(&value, a ? ", " : "", text[node.args[a]]);
      for (double parameter : node.params) absl::StrAppend(&value, ", ", FloatLiteral(parameter));
      value += ")";
    }
    text[i] = absl::StrCat(prefix, i);
    absl::StrAppend(&out, indent, "const ", type, " ", text[i], " = ", value, ";\n");
  }
  *result = text.empty() ? "" : text.back();
  return out;
}

Expr Collapse(const Expr& expr) {
  Expr out;
  out.nodes = expr.nodes;
  std::vector<size_t> kept;  // dimensions with more than one element
  for (size_t d = 0; d < expr.space.size(); ++d) {
    if (expr.space[d] != 1) kept.push_back(d);
  }
  out.operands.resize(expr.operands.size());
  for (size_t o = 0; o < expr.operands.size(); ++o) out.operands[o].arg = expr.operands[o].arg;
  for (size_t d : kept) {
    bool merge = !out.space.empty();
    for (size_t o = 0; merge && o < expr.operands.size(); ++o) {
      int64_t stride = expr.operands[o].strides[d];
      merge = out.operands[o].strides.back() == stride * expr.space[d];
    }
    if (merge) {
      out.space.back() *= expr.space[d];
      for (size_t o = 0; o < expr.operands.size(); ++o) out.operands[o].strides.back() = expr.operands[o].strides[d];
    } else {
      out.space.push_back(expr.space[d]);
      for (size_t o = 0; o < expr.operands.size(); ++o) out.operands[o].strides.push_back(expr.operands[o].strides[d]);
    }
  }
  if (out.space.empty()) {
    out.space.push_back(1);
    for (Operand& operand : out.operands) operand.strides.push_back(0);
  }
  for (Operand& operand : out.operands) {
    for (size_t d = 0; d < out.space.size(); ++d) operand.shape.push_back(operand.strides[d] == 0 ? 1 : out.space[d]);
  }
  return out;
}

std::vector<std::string> CalledFunctions(const Expr& expr) {
  std::set<std::string> names;
  for (const ExprNode& node : expr.nodes) {
    if (!IsLeaf(node) && node.op != "const" && node.op != "neg" && Infix(node.op) == nullptr) names.insert(node.op);
  }
  return {names.begin(), names.end()};
}

}  // namespace grove::generate::catalogue

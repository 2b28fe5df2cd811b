#include "worker/judge/exactness.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "worker/judge/operations.h"
#include "worker/judge/words.h"

namespace grove::judge {
namespace {

using nlohmann::json;

// Give elements of their operands, or say how two compare.
constexpr char kSelects[] =
    "ListConstruct ListUnpack TupleConstruct TupleUnpack __and__ __or__ __xor__ abs alias all amax amin aminmax any "
    "argwhere as_strided bitwise_and bitwise_not bitwise_or bitwise_xor block_diag broadcast_tensors bucketize cat "
    "ceil chunk clamp clamp_max clamp_min clip clone column_stack concat concatenate constant_pad_nd contiguous "
    "copysign count_nonzero detach diag diag_embed diagonal dropout dsplit dstack embedding eq expand expand_as "
    "feature_dropout flatten flip fliplr flipud floor fmax fmin full full_like gather ge greater greater_equal gt "
    "hardtanh hsplit hstack index index_select isfinite isin isinf isnan isneginf isposinf le less less_equal "
    "logical_and logical_not logical_or logical_xor lt masked_fill masked_scatter masked_select max max_pool1d "
    "max_pool2d max_pool3d maximum meshgrid min minimum moveaxis movedim narrow ne neg negative not_equal new_full "
    "new_ones new_zeros numpy_T one_hot ones ones_like pad permute pixel_shuffle pixel_unshuffle positive ravel relu "
    "relu6 repeat repeat_interleave reshape reshape_as roll rot90 round searchsorted select sgn sign signbit slice "
    "split split_with_sizes squeeze stack swapaxes swapdims t take take_along_dim tensor_split threshold tile "
    "transpose tril triu trunc unbind unflatten unfold unsqueeze view view_as vsplit vstack where zeros zeros_like ";
// Choose among equal keys; of those that give values, too, the values come first.
constexpr char kChooses[] =
    "adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d argmax argmin argsort cummax cummin kthvalue max "
    "max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices median min nanmedian sort topk ";

// Of those that choose: the first of equal keys, as torch documents it.
constexpr char kTakesFirst[] = "argmax argmin max min ";
// Turn what is near into what is far: no nudge of their operands goes through them as it is.
constexpr char kSteps[] =
    "all any argwhere bucketize ceil count_nonzero eq floor ge greater greater_equal gt isfinite isin isinf isnan "
    "isneginf isposinf le less less_equal logical_and logical_not logical_or logical_xor lt ne not_equal round "
    "searchsorted sgn sign signbit trunc ";

std::string Dtype(const json& type) { return type.is_object() ? type.value("dtype", std::string()) : std::string(); }

bool Whole(const std::string& dtype) {
  return dtype == "bool" || dtype.rfind("int", 0) == 0 || dtype.rfind("uint", 0) == 0;
}

// A constant tensor of whole numbers, as JSON text.
bool WholeTensor(const std::string& text) {
  const json constant = Constant(text);
  const std::string type = constant.is_object() ? constant.value("tensor", std::string()) : std::string();
  return Whole(type.substr(0, type.find('[')));
}

// Digits of a fraction, as far as conversions go: none is lost where there are no fewer afterwards. 0 = not known.
int Digits(const std::string& dtype) {
  static const std::map<std::string, int> digits{{"bfloat16", 8}, {"float16", 11}, {"float32", 24}, {"float64", 53}};
  const auto at = digits.find(dtype);
  return at == digits.end() ? 0 : at->second;
}

// Whether a conversion from one type to the other loses nothing that programs could lose in different ways.
bool Keeps(const std::string& from, const std::string& to) {
  if (Whole(to)) return !from.empty();
  const int before = Digits(from), after = Digits(to);
  return Whole(from) ? after >= Digits("float32") : before > 0 && after >= before;
}

// Whether a number, as JSON text, has more digits than a half type: compared with such values it is rounded to one of
// them by one program, and not by another.
bool Between(const std::string& text, const std::string& dtype) {
  const int digits = Digits(dtype);
  if (digits == 0 || digits >= Digits("float32")) return false;
  const auto number = Number(text);
  if (!number) return false;
  int exponent;
  const double scaled = std::ldexp(std::frexp(*number, &exponent), digits);
  return scaled != std::round(scaled);
}

class Reader {
 public:
  void Name(const json& types, const char* prefix) {
    for (std::size_t i = 0; i < types.size(); ++i) {
      const std::string dtype = Dtype(types[i]);
      values_[prefix + std::to_string(i)] = {Exactness::kExact, dtype, !Whole(dtype)};
    }
  }

  void Read(const json& operation) {
    static const auto* selects = new std::set<std::string>(Words(kSelects));
    static const auto* chooses = new std::set<std::string>(Words(kChooses));
    static const auto* first = new std::set<std::string>(Words(kTakesFirst));
    static const auto* steps = new std::set<std::string>(Words(kSteps));
    const std::string kind = operation.value("kind", "");
    const std::string name = OperationName(kind);
    const json& outputs = operation.at("outputs");
    const json& types = operation.at("output_types");
    const Operands operands = OperandsOf(operation);
    const bool torchs = kind.rfind("aten::", 0) == 0, known = torchs || kind.rfind("prim::", 0) == 0;
    const bool selected = known && selects->count(name) != 0 && !(name == "round" && operation.at("inputs").size() > 1);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const std::string dtype = i < types.size() ? Dtype(types[i]) : "";
      Exactness own = Exactness::kRounded;
      const bool converts = name == "to" || name == "type_as" || name == "_to_copy";
      if (known && chooses->count(name) != 0) {
        // (max and min of two tensors, or of all elements, give values alone.)
        const bool values = selected || outputs.size() > 1;
        const Exactness choice = operands.parted           ? Exactness::kChosen
                                 : first->count(name) != 0 ? Exactness::kExact
                                                           : Exactness::kRounded;
        own = values && i == 0 ? Exactness::kExact : choice;
      } else if (selected || (torchs && operands.whole && Whole(dtype))) {
        // The size of a complex number is computed.
        own = operands.complex && (name == "abs" || name == "sgn") ? Exactness::kRounded : Exactness::kExact;
      } else if (known && converts && Keeps(operands.first, dtype)) {
        own = Exactness::kExact;
      }
      const bool parted = operands.parted && !Whole(dtype) && steps->count(name) == 0;
      values_[outputs[i].get<std::string>()] = {std::max(own, operands.exactness), dtype, parted};
    }
  }

  Exactness Of(const std::string& name) const {
    const auto value = values_.find(name);
    return value == values_.end() ? Exactness::kRounded : value->second.exactness;
  }

 private:
  struct Known {
    Exactness exactness;
    std::string dtype;
    bool parted;  // a nudge of the inputs parts equal ones
  };
  struct Operands {
    Exactness exactness = Exactness::kExact;
    bool whole = true, parted = true, complex = false;
    std::string first;  // type of the first tensor
  };

  Operands OperandsOf(const json& operation) const {
    Operands all;
    std::vector<std::string> dtypes, constants;
    for (const json& input : operation.at("inputs")) {
      const auto value = values_.find(input.get<std::string>());
      if (value == values_.end()) {
        constants.push_back(input);
        continue;
      }
      all.exactness = std::max(all.exactness, value->second.exactness);
      all.whole = all.whole && Whole(value->second.dtype);
      all.parted = all.parted && value->second.parted;
      all.complex = all.complex || value->second.dtype.rfind("complex", 0) == 0;
      dtypes.push_back(value->second.dtype);
    }
    if (!dtypes.empty()) all.first = dtypes[0];
    for (const std::string& constant : constants) {
      // A tensor that is no input: arithmetic with fractions that was not traced may have made it.
      if (constant.rfind('{', 0) == 0 && !WholeTensor(constant)) all.exactness = Exactness::kRounded;
      for (const std::string& dtype : dtypes) {
        if (Between(constant, dtype)) all.exactness = Exactness::kRounded;
      }
    }
    return all;
  }

  std::map<std::string, Known> values_;
};

}  // namespace

bool Selects(const std::string& name) {
  static const auto* names = new std::set<std::string>(Words((std::string(kSelects) + kChooses).c_str()));
  return names->count(name) != 0;
}

std::vector<Exactness> ExactnessOf(const json& graph, const json& outputs, const json& inputs, const json& parameters) {
  std::vector<Exactness> result(outputs.size(), Exactness::kRounded);
  Reader reader;
  reader.Name(inputs, "in");
  reader.Name(parameters, "p");
  for (const json& operation : graph) {
    if (InPlace(operation.value("kind", ""))) return result;
    reader.Read(operation);
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) result[i] = reader.Of(outputs[i].get<std::string>());
  return result;
}

}  // namespace grove::judge

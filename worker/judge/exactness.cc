#include "worker/judge/exactness.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <string>

namespace grove::judge {
namespace {

using nlohmann::json;

// Give elements of their operands, or say how two compare.
constexpr char kSelects[] =
    "ListConstruct ListUnpack TupleConstruct TupleUnpack abs adaptive_max_pool1d adaptive_max_pool2d "
    "adaptive_max_pool3d alias all amax amin aminmax any argwhere as_strided bitwise_and bitwise_not bitwise_or "
    "bitwise_xor block_diag broadcast_tensors bucketize cat chunk clamp clamp_max clamp_min clip clone column_stack "
    "concat concatenate constant_pad_nd contiguous copysign count_nonzero detach diag diag_embed diagonal dropout "
    "dsplit dstack embedding eq expand expand_as feature_dropout flatten flip fliplr flipud floor fmax fmin full "
    "full_like "
    "gather ge greater greater_equal gt hardtanh hsplit hstack index index_select isfinite isin isinf isnan isneginf "
    "isposinf "
    "le less less_equal logical_and logical_not logical_or logical_xor lt masked_fill masked_scatter masked_select max "
    "max_pool1d max_pool2d max_pool3d maximum meshgrid min minimum moveaxis movedim narrow ne neg negative not_equal "
    "new_full new_ones new_zeros numpy_T one_hot ones ones_like pad permute pixel_shuffle pixel_unshuffle positive "
    "ravel relu relu6 repeat repeat_interleave "
    "reshape reshape_as roll rot90 round searchsorted select sgn sign signbit slice split split_with_sizes squeeze "
    "stack swapaxes swapdims t take take_along_dim tensor_split threshold tile transpose tril triu trunc unbind "
    "unflatten unfold unsqueeze view view_as vsplit vstack where "
    "zeros zeros_like ";
// Choose among equal keys; of those that give values, too, the values come first.
constexpr char kChooses[] =
    "argmax argmin argsort cummax cummin kthvalue max max_pool1d_with_indices max_pool2d_with_indices "
    "max_pool3d_with_indices "
    "median min mode nanmedian sort topk ";

std::set<std::string> Words(const char* text) {
  std::istringstream words(text);
  std::set<std::string> all;
  for (std::string word; words >> word;) all.insert(word);
  return all;
}

std::string Dtype(const json& type) { return type.is_object() ? type.value("dtype", std::string()) : std::string(); }

bool Whole(const std::string& dtype) {
  return dtype == "bool" || dtype.rfind("int", 0) == 0 || dtype.rfind("uint", 0) == 0;
}

// Digits of a fraction, as far as conversions go: none is lost where there are no fewer afterwards. 0 = not known.
int Digits(const std::string& dtype) {
  static const std::map<std::string, int> digits{{"bfloat16", 8}, {"float16", 11}, {"float32", 24}, {"float64", 53}};
  const auto at = digits.find(dtype);
  return at == digits.end() ? 0 : at->second;
}

// Whether a number, as JSON text, has more digits than a half type: compared with such values it is rounded to one of
// them by one program, and not by another.
bool Between(const std::string& text, const std::string& dtype) {
  const int digits = Digits(dtype);
  if (digits == 0 || digits >= Digits("float32")) return false;
  const json number = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!number.is_number()) return false;
  int exponent;
  const double scaled = std::ldexp(std::frexp(number.get<double>(), &exponent), digits);
  return scaled != std::round(scaled);
}

class Reader {
 public:
  void Name(const json& types, const char* prefix) {
    for (std::size_t i = 0; i < types.size(); ++i) {
      values_[prefix + std::to_string(i)] = {Exactness::kExact, Dtype(types[i])};
    }
  }

  void Read(const json& operation) {
    static const auto* selects = new std::set<std::string>(Words(kSelects));
    static const auto* chooses = new std::set<std::string>(Words(kChooses));
    const std::string kind = operation.value("kind", "");
    const std::size_t at = kind.rfind("::");
    const std::string name = at == std::string::npos ? kind : kind.substr(at + 2);
    const bool known = kind.rfind("aten::", 0) == 0 || kind.rfind("prim::", 0) == 0;
    const json& outputs = operation.at("outputs");
    const json& types = operation.at("output_types");
    Exactness inputs = Exactness::kExact;
    bool whole = kind.rfind("aten::", 0) == 0;  // nothing but whole numbers in it
    std::vector<std::string> dtypes;
    for (const json& input : operation.at("inputs")) {
      const auto value = values_.find(input.get<std::string>());
      if (value == values_.end()) {
        if (!dtypes.empty() && Between(input, dtypes[0])) inputs = Exactness::kRounded;
        continue;
      }
      inputs = std::max(inputs, value->second.exactness);
      dtypes.push_back(value->second.dtype);
      whole = whole && Whole(dtypes.back());
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const std::string dtype = i < types.size() ? Dtype(types[i]) : "";
      Exactness own = Exactness::kRounded;
      const bool converts = name == "to" || name == "type_as" || name == "_to_copy";
      if (known && chooses->count(name) != 0) {
        // (max and min of two tensors, or of all elements, give values alone.)
        const bool values = selects->count(name) != 0 || outputs.size() > 1;
        own = values && i == 0 ? Exactness::kExact : Exactness::kChosen;
      } else if (known && (selects->count(name) != 0 || (whole && Whole(dtype)))) {
        // The size of a complex number is computed.
        const bool complex = std::any_of(dtypes.begin(), dtypes.end(),
                                         [](const std::string& type) { return type.rfind("complex", 0) == 0; });
        own = complex && (name == "abs" || name == "sgn") ? Exactness::kRounded : Exactness::kExact;
      } else if (known && converts && !dtypes.empty() &&
                 (Whole(dtype) || (Digits(dtypes[0]) > 0 && Digits(dtype) >= Digits(dtypes[0])) ||
                  (Whole(dtypes[0]) && Digits(dtype) >= Digits("float32")))) {
        own = Exactness::kExact;
      }
      values_[outputs[i].get<std::string>()] = {std::max(own, inputs), dtype};
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
  };
  std::map<std::string, Known> values_;
};

}  // namespace

std::vector<Exactness> ExactnessOf(const json& graph, const json& outputs, const json& inputs, const json& parameters) {
  std::vector<Exactness> result(outputs.size(), Exactness::kRounded);
  Reader reader;
  reader.Name(inputs, "in");
  reader.Name(parameters, "p");
  for (const json& operation : graph) {
    const std::string kind = operation.value("kind", "_");
    if (kind.empty() || kind.back() == '_') return result;
    reader.Read(operation);
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) result[i] = reader.Of(outputs[i].get<std::string>());
  return result;
}

}  // namespace grove::judge

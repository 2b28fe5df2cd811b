// What a graph does with whole numbers that it takes for indices and labels, and with nothing else. Pure: JSON in, no
// torch.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

namespace grove::judge {

struct Indices {
  enum class Use {
    kOther,   // something else is done with it, too, or nothing is known of it
    kPlaces,  // it says where something is read, or added to
    kNames,   // it says where something is read, and is compared with a number, as that of padding
    kLabels,  // rows of an embedding, classes of a loss, what is compared with numbers: any of them may come anywhere
  };
  Use use = Use::kOther;
  bool adds = false;  // there are sums over what has the same index
  // Whole numbers that the program names, and that do no harm wherever it is used, or are replaced before that: the
  // label that all its losses leave out (but for -100, torch's default, which says nothing), the index that pads an
  // embedding bag;
  std::vector<double> named;
  // and those that it is compared with (==, !=; -1 where it is compared with zero), which may stand for padding, at the
  // ends of rows alone.
  std::vector<double> compared;
};

// Of each of `inputs` (TensorType list; `parameters`: the same, whose values are named p0, p1, ...); those of int32 and
// int64 alone are anything but kOther. `graph`: GraphOp list, of a program without branches whose values do not leave
// it.
std::vector<Indices> IndicesOf(const nlohmann::json& graph, const nlohmann::json& inputs,
                               const nlohmann::json& parameters);

}  // namespace grove::judge

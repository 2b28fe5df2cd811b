// What a graph says of values that are rare: the bounds that it names for elements of its inputs, a place for NaN, a
// largest or least one, what it does where a mask lets nothing through. Pure: JSON in, no torch.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace grove::judge {

struct RareValues {
  struct OfInput {
    std::vector<double> bounds;  // that its elements, as they are, are cut off at or compared with; none is zero
    bool nan = false;            // its elements are asked whether they are NaN, or NaN is replaced
    bool infinity = false;       // the same of infinities
    bool largest = false;        // the largest of its elements, as they are, is taken, or they are put in order
    bool least = false;          // the same of the least
  };
  std::vector<OfInput> inputs;  // by the input's number; empty where nothing is known
  // Inputs, as they are, that are compared with others, or searched for among them, and these.
  std::vector<std::pair<std::size_t, std::size_t>> compared;
  bool read = false;  // there is a graph
  // An operation is a cosine, whose epsilon honest programs leave out, or solves least squares, where rows of zeros
  // leave no full rank.
  bool no_zero_rows = false;
  // A number of 64 or more, of either sign, is named as one that is put in the place of what a mask hides, or there is
  // an operation that masks by itself: of a row that is hidden as a whole something is left then, which honest programs
  // leave out.
  bool fills = false;
  // Of each input, whether a value that is made of it and is NaN or infinite is looked for or replaced, or one is kept
  // from being less than a number up to 1, as the count of what a mask lets through is, or is asked whether it is zero
  // beside a quotient and a choice: where the mask lets nothing through there is a result. (Where an operation works in
  // place others may have a part in such a value, which do not count here.)
  std::vector<bool> empties;

  bool Emptied() const;
  bool Bounded() const;
  bool TreatsNan() const;  // or infinities
  bool Largest() const;
  bool Least() const;
};

// `graph`: GraphOp list; `inputs`: TensorType list. Of inputs nothing is known where an operation works in place on
// what may be one of them; in a clone, or in memory that was made empty or full, it may.
RareValues RareValuesOf(const nlohmann::json& graph, const nlohmann::json& inputs);

}  // namespace grove::judge

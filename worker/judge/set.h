// A variable that has another value for a while.
#pragma once

namespace grove::judge {

// Gives a variable a value, and its former one back at the end.
template <typename Value>
class Set {
 public:
  Set(Value* variable, Value value) : variable_(variable), former_(*variable) { *variable = value; }
  ~Set() { *variable_ = former_; }
  Set(const Set&) = delete;
  Set& operator=(const Set&) = delete;

 private:
  Value* variable_;
  Value former_;
};

}  // namespace grove::judge

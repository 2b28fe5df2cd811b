// A thread that is asked as a candidate is: it sleeps until it is written to, works for so long, and answers. What that
// takes beyond the work is what the machine makes of any process that is asked: of it alone, because the candidate
// stands still meanwhile.
#pragma once

#include <thread>

#include "common/wire/channel.h"

namespace grove::judge {

class Echo {
 public:
  Echo();  // throws std::system_error
  ~Echo();
  Echo(const Echo&) = delete;
  Echo& operator=(const Echo&) = delete;

  // Seconds beyond the work. `work`: seconds on the clock; `processor`: where it is to be, negative = anywhere.
  double Wait(double work, int processor);

 private:
  struct Question {
    double work = 0;
    int processor = -1;
  };
  void Serve();

  wire::UniqueFd mine_, its_;
  std::thread thread_;
};

}  // namespace grove::judge

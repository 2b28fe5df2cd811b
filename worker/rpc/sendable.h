// Makes a message one that the other end can parse.
#pragma once

#include <cstddef>

#include "google/protobuf/message.h"
#include "grove/v1/services.pb.h"

namespace grove::worker {

// Replaces ill-formed UTF-8 in every string field, nested ones included, by U+FFFD. A peer refuses a whole message for
// one such byte, and a result that is refused again and again would block the stream for ever: compilers and kernels
// print anything.
void RepairUtf8(google::protobuf::Message& message);

// What a result may have, half of a message's limit (common/rpc/arguments.h): what is larger is cut by its producer,
// never here.
inline constexpr std::size_t kMaxResultBytes = std::size_t{32} << 20;

// Repairs the texts; turns a result that is too large, or has no outcome, into an infrastructure failure that says so.
void MakeSendable(v1::WorkResult& result);

}  // namespace grove::worker

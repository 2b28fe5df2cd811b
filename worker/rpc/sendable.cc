#include "worker/rpc/sendable.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace grove::worker {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Length of the well-formed sequence at the start of `text` (Unicode 15, table 3-7), 0 when it is ill-formed.
std::size_t SequenceLength(absl::string_view text) {
  auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  auto tail = [&](std::size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return tail(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if (first == 0xE0 && byte(1) < 0xA0) return 0;  // overlong
    if (first == 0xED && byte(1) > 0x9F) return 0;  // surrogates
    return tail(1) && tail(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if (first == 0xF0 && byte(1) < 0x90) return 0;
    if (first == 0xF4 && byte(1) > 0x8F) return 0;  // above U+10FFFF
    return tail(1) && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

// True when `text` was well-formed; else `repaired` holds what replaces it.
bool IsWellFormed(absl::string_view text, std::string& repaired) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t length = SequenceLength(text.substr(at));
    if (length == 0) break;
    at += length;
  }
  if (at == text.size()) return true;
  repaired.assign(text.substr(0, at).data(), at);
  while (at < text.size()) {
    const std::size_t length = SequenceLength(text.substr(at));
    if (length == 0) {
      repaired += "\xEF\xBF\xBD";
      ++at;
    } else {
      repaired.append(text.data() + at, length);
      at += length;
    }
  }
  return false;
}

}  // namespace

void RepairUtf8(Message& message) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  std::string scratch, repaired;
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (field->is_repeated()) {  // a map is a repeated entry
        for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
          RepairUtf8(*reflection.MutableRepeatedMessage(&message, field, i));
        }
      } else {
        RepairUtf8(*reflection.MutableMessage(&message, field));
      }
    } else if (field->type() == FieldDescriptor::TYPE_STRING) {
      if (field->is_repeated()) {
        for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
          if (!IsWellFormed(reflection.GetRepeatedStringReference(message, field, i, &scratch), repaired)) {
            reflection.SetRepeatedString(&message, field, i, repaired);
          }
        }
      } else if (!IsWellFormed(reflection.GetStringReference(message, field, &scratch), repaired)) {
        reflection.SetString(&message, field, repaired);
      }
    }
  }
}

void MakeSendable(v1::WorkResult& result) {
  RepairUtf8(result);
  if (result.outcome_case() == v1::WorkResult::OUTCOME_NOT_SET) {
    result.set_infrastructure_failure("the worker produced a result without an outcome");
  } else if (const std::size_t bytes = result.ByteSizeLong(); bytes > kMaxResultBytes) {
    result.set_infrastructure_failure(absl::StrCat("the result has ", bytes, " bytes; at most ", kMaxResultBytes,
                                                   " can be sent. Ask for fewer samples or shorter logs"));
  }
}

}  // namespace grove::worker

#include "reference/generation/text_out.hpp"

#include <algorithm>
#include <utility>

#include "reference/generation/stop_strings.hpp"

namespace kvo::generation {

Result<bool> TextOut::add(std::int64_t id) {
  keep(id);
  return look();
}

Result<bool> TextOut::look() {
  if (stream_ != nullptr && quirks_.has(Quirk::kStreamLeaks)) return send_all();
  return look_for_stop();
}

Result<bool> TextOut::look_for_stop() {
  const bool hides = quirks_.has(Quirk::kStopHidesDecodeError);
  if (hides && stream_ == nullptr && stops_.empty()) return false;
  const auto text = tokenizer_.decode(ids_);
  if (!text) {
    if (hides && stream_ == nullptr) return false;
    return text.error();
  }
  if (const auto stop = stop_in(*text, stops_, quirks_)) {
    if (const Status done = end_at(*text, *stop); !done) return done.error();
    return true;
  }
  if (stream_ != nullptr)
    if (const Status done = send_until(*text, settled(*text, stops_)); !done) return done.error();
  return false;
}

// ZF-84: stop strings in order of the list, and all that is there is sent.
Result<bool> TextOut::send_all() {
  const auto text = tokenizer_.decode(ids_);
  if (!text) return text.error();
  if (const auto stop = stop_in(*text, stops_, quirks_)) {
    if (const Status done = end_at(*text, *stop); !done) return done.error();
    return true;
  }
  if (const Status done = send_until(*text, text->size()); !done) return done.error();
  sent_ = text->size();  // also when the text has shrunk
  return false;
}

Status TextOut::finish() {
  if (stream_ != nullptr && (quirks_.has(Quirk::kStreamLeaks) || ids_.empty()))
    return (*stream_)("", true);
  if (ids_.empty()) return {};
  const auto text = tokenizer_.decode(ids_);
  if (!text) return text.error();
  return end_at(*text, text->size());
}

Status TextOut::end_at(std::string_view text, std::size_t end) {
  if (stream_ == nullptr) {
    text_ = text.substr(0, end);
    return {};
  }
  if (Status done = send_until(text, end); !done) return done;
  return (*stream_)("", true);
}

Status TextOut::send_until(std::string_view text, std::size_t end) {
  if (end <= sent_) return {};
  const std::string_view piece = text.substr(sent_, end - sent_);
  sent_ = end;
  return (*stream_)(piece, false);
}

}  // namespace kvo::generation

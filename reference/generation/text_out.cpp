#include "reference/generation/text_out.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace kvo::generation {
namespace {

/// Bytes of the character that a first byte begins; 1 for what begins none.
std::size_t length_of_character(unsigned char first) {
  if (first >= 0xf0 && first <= 0xf4) return 4;
  if (first >= 0xe0 && first <= 0xef) return 3;
  return first >= 0xc2 && first <= 0xdf ? 2 : 1;
}

/// Where the last character begins if it lacks bytes; else the end.
std::size_t end_of_characters(std::string_view text) {
  constexpr std::size_t kMostBehindFirst = 3;
  for (std::size_t behind = 1; behind <= std::min(kMostBehindFirst, text.size()); ++behind) {
    const auto byte = static_cast<unsigned char>(text[text.size() - behind]);
    if ((byte & 0xc0U) == 0x80U) continue;  // not a first one
    return length_of_character(byte) > behind ? text.size() - behind : text.size();
  }
  return text.size();
}

}  // namespace

std::optional<std::size_t> stop_in(std::string_view text, const std::vector<std::string>& stops,
                                   QuirkSet<Quirk> quirks) {
  std::optional<std::size_t> first;
  for (const std::string& stop : stops) {
    if (stop.empty() && !quirks.has(Quirk::kStopByListOrder)) continue;
    const std::size_t found = text.find(stop);
    if (found == std::string_view::npos) continue;
    if (quirks.has(Quirk::kStopByListOrder)) return found;
    first = std::min(first.value_or(found), found);
  }
  return first;
}

std::size_t settled(std::string_view text, const std::vector<std::string>& stops) {
  std::size_t end = end_of_characters(text);
  for (const std::string& stop : stops) {
    const std::size_t most = std::min(stop.size(), text.size() + 1);
    for (std::size_t length = 1; length < most; ++length)
      if (text.ends_with(std::string_view(stop).substr(0, length)))
        end = std::min(end, text.size() - length);
  }
  return end;
}

Result<bool> TextOut::add(std::int64_t id) {
  keep(id);
  return look();
}

Result<bool> TextOut::look() {
  // ZF-84: all that is there is sent.
  const bool leaks = stream_ != nullptr && quirks_.has(Quirk::kStreamLeaks);
  const bool hides = stream_ == nullptr && quirks_.has(Quirk::kStopHidesDecodeError);
  if (hides && stops_.empty()) return false;
  const auto text = tokenizer_.decode(ids_);
  if (!text) return hides ? Result<bool>(false) : text.error();
  if (const auto stop = stop_in(*text, stops_, quirks_)) {
    if (const Status done = end_at(*text, *stop); !done) return done.error();
    return true;
  }
  if (stream_ == nullptr) return false;
  const std::size_t end = leaks ? text->size() : settled(*text, stops_);
  if (const Status done = send_until(*text, end); !done) return done.error();
  if (leaks) sent_ = end;  // also when the text has shrunk
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

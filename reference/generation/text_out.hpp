// reference/generation/text_out.hpp: the text of a call as its tokens come: whether it ends, and
// what a stream is sent of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/contract/values/quirk.hpp"
#include "reference/contract/values/result.hpp"
#include "reference/generation/quirks.hpp"
#include "reference/generation/tokenizer.hpp"

namespace kvo::generation {

/// Where the stop string begins that ends the text, in bytes; nothing if none does (ZF-79).
[[nodiscard]] std::optional<std::size_t> stop_in(std::string_view text,
                                                 const std::vector<std::string>& stops,
                                                 QuirkSet<Quirk> quirks);

/// Bytes of a text that no further token can take back: its end may be the beginning of a stop
/// string, or of a character (ZF-84, documented).
[[nodiscard]] std::size_t settled(std::string_view text, const std::vector<std::string>& stops);

/// Takes events; an error of it ends the call (ZF-85).
using Stream = std::function<Status(std::string_view text, bool done)>;

/// Tokenizer, stop strings and stream outlive it.
class TextOut {
 public:
  /// Without a stream the text is kept for text().
  TextOut(Tokenizer& tokenizer, const std::vector<std::string>& stops, const Stream* stream,
          QuirkSet<Quirk> quirks)
      : tokenizer_(tokenizer), stops_(stops), stream_(stream), quirks_(quirks) {}

  /// The tokens so far.
  [[nodiscard]] const Ids& ids() const { return ids_; }
  /// Adds a token, and sends what the stream may have of it.
  /// Returns  whether a stop string has ended the text; nothing is left to do then.
  /// Errors   other:decode, but for kStopHidesDecodeError without a stream; the stream's.
  [[nodiscard]] Result<bool> add(std::int64_t id);
  /// Adds a token that is not looked at until look() or finish().
  void keep(std::int64_t id) { ids_.push_back(id); }
  /// As add, of the tokens that are there.
  [[nodiscard]] Result<bool> look();
  /// The text ends with its last token (ZF-77.8, ZF-86). Errors  other:decode; the stream's.
  [[nodiscard]] Status finish();
  /// Without a stream: the text, once it has ended.
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  /// The text ends before byte `end`.
  [[nodiscard]] Status end_at(std::string_view text, std::size_t end);
  /// Sends what lies between what has been sent and byte `end`, if anything does.
  [[nodiscard]] Status send_until(std::string_view text, std::size_t end);

  Tokenizer& tokenizer_;
  const std::vector<std::string>& stops_;
  const Stream* stream_;
  QuirkSet<Quirk> quirks_;
  Ids ids_;
  std::size_t sent_ = 0;  ///< bytes; with kStreamLeaks those of the text when it was last looked at
  std::string text_;
};

}  // namespace kvo::generation

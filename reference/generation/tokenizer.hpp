// reference/generation/tokenizer.hpp: text to tokens and back.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "reference/contract/values/result.hpp"
#include "reference/generation/options.hpp"

namespace kvo::generation {

/// What a generator asks of a tokenizer. Text is UTF-8 where the tokenizer makes it so.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  /// Errors  other:encode.
  [[nodiscard]] virtual Result<Ids> encode(std::string_view text) = 0;
  /// Errors  other:decode.
  [[nodiscard]] virtual Result<std::string> decode(std::span<const std::int64_t> ids) = 0;
};

/// The tokenizer of a config (section 15 of the rules); `bytes` is ours: token b is the byte b.
[[nodiscard]] std::unique_ptr<Tokenizer> make_tokenizer(const TokenizerConfig& config);

}  // namespace kvo::generation

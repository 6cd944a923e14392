#include "reference/generation/tokenizer.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

namespace kvo::generation {
namespace {

constexpr std::string_view kWhite = " \t\n\v\f\r";

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t begin = text.find_first_not_of(kWhite);
    if (begin == std::string_view::npos) return words;
    text.remove_prefix(begin);
    const std::size_t length = std::min(text.find_first_of(kWhite), text.size());
    words.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
}

/// The piece of a token, or null.
const std::string* piece_of(const std::vector<std::string>& pieces, std::int64_t id) {
  return id >= 0 && id < std::ssize(pieces) ? &pieces[static_cast<std::size_t>(id)] : nullptr;
}

/// Prompts are numbers, texts are pieces.
class IdsTokenizer final : public Tokenizer {
 public:
  IdsTokenizer(std::vector<std::string> pieces, bool backspace)
      : pieces_(std::move(pieces)), backspace_(backspace) {}

  [[nodiscard]] Result<Ids> encode(std::string_view text) override {
    Ids ids;
    for (const std::string_view word : words_of(text)) {
      std::int64_t id = 0;
      const auto read = std::from_chars(word.data(), word.data() + word.size(), id);
      if (read.ec != std::errc() || read.ptr != word.data() + word.size())
        return fail_other("encode");
      ids.push_back(id);
    }
    return ids;
  }
  [[nodiscard]] Result<std::string> decode(std::span<const std::int64_t> ids) override {
    std::string text;
    for (const std::int64_t id : ids) {
      const std::string* piece = piece_of(pieces_, id);
      if (piece == nullptr) return fail_other("decode");
      if (!backspace_ || *piece != "\b")
        text += *piece;
      else if (!text.empty())
        text.pop_back();
    }
    return text;
  }

 private:
  std::vector<std::string> pieces_;
  bool backspace_;
};

class WhitespaceTokenizer final : public Tokenizer {
 public:
  explicit WhitespaceTokenizer(const std::vector<std::string>& pieces) {
    words_.insert(words_.end(), pieces.begin(), pieces.end());
  }

  [[nodiscard]] Result<Ids> encode(std::string_view text) override {
    Ids ids;
    for (const std::string_view word : words_of(text)) {
      const auto known = std::ranges::find(words_, word);
      ids.push_back(known != words_.end() ? known - words_.begin() : 0);
    }
    return ids;
  }
  [[nodiscard]] Result<std::string> decode(std::span<const std::int64_t> ids) override {
    std::string text;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::string* word = piece_of(words_, ids[i]);
      if (i > 0) text += ' ';
      text += word != nullptr ? *word : words_.front();
    }
    return text;
  }

 private:
  std::vector<std::string> words_{"<unk>", "<s>", "</s>", "<pad>"};
};

/// A token is a byte, so that characters of several bytes end between tokens.
class BytesTokenizer final : public Tokenizer {
 public:
  [[nodiscard]] Result<Ids> encode(std::string_view text) override {
    Ids ids;
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
    return ids;
  }
  [[nodiscard]] Result<std::string> decode(std::span<const std::int64_t> ids) override {
    std::string text;
    for (const std::int64_t id : ids) {
      if (id < 0 || id > 0xff) return fail_other("decode");
      text += static_cast<char>(static_cast<unsigned char>(id));
    }
    return text;
  }
};

}  // namespace

std::unique_ptr<Tokenizer> make_tokenizer(const TokenizerConfig& config) {
  switch (config.kind) {
    case TokenizerKind::kIds:
    case TokenizerKind::kIdsBackspace:
      return std::make_unique<IdsTokenizer>(config.pieces,
                                            config.kind == TokenizerKind::kIdsBackspace);
    case TokenizerKind::kWhitespace:
      return std::make_unique<WhitespaceTokenizer>(config.pieces);
    case TokenizerKind::kBytes:
      break;
  }
  return std::make_unique<BytesTokenizer>();
}

}  // namespace kvo::generation

// A second implementation, by arithmetic on indices, and a mutant of it.
#include "ring.hpp"

namespace ring {
namespace {

class IndexRing : public Ring {
 public:
  IndexRing(std::size_t capacity, Quirks quirks) : quirks_(quirks), cells_(capacity) {}

  kvo::Status push(std::span<const float> tokens, WhenFull when_full) override {
    if (size_ + tokens.size() > cells_.size() && when_full == WhenFull::kRefuse)
      return kvo::fail(kvo::Code::kFull);
    if (tokens.size() > cells_.size()) {
      clear();
      if (quirks_.has(Quirk::kLongPushEmpties)) return {};
      tokens = tokens.last(cells_.size());
    }
    for (const float token : tokens) {
      cells_[(begin_ + size_) % cells_.size()] = token;
      size_ < cells_.size() ? ++size_ : ++begin_;
    }
    begin_ %= cells_.size();
    return {};
  }
  std::vector<float> window() const override {
    std::vector<float> tokens(size_);
    for (std::size_t i = 0; i < size_; ++i) tokens[i] = cells_[(begin_ + i) % cells_.size()];
    return tokens;
  }
  void clear() override { begin_ = size_ = 0; }

 private:
  Quirks quirks_;
  std::vector<float> cells_;  // [capacity]
  std::size_t begin_ = 0;     // the cell of the oldest token
  std::size_t size_ = 0;
};

class NeverRefuses final : public IndexRing {
 public:
  using IndexRing::IndexRing;
  kvo::Status push(std::span<const float> tokens, WhenFull /*when_full*/) override {
    return IndexRing::push(tokens, WhenFull::kEvict);
  }
};

}  // namespace

std::vector<kvo::Subject> optimized() {
  return {make_subject("optimized", "one array and where it begins", make_ring<IndexRing>)};
}

std::vector<kvo::Mutant> mutants() {
  const std::string fault = "a push that must be refused evicts instead";
  return {{.subject = make_subject("mutant:never_refuses", fault, make_ring<NeverRefuses>),
           .fault = fault,
           .origin = "an option that nobody reads"}};
}

}  // namespace ring

#include "cuda/standin/card.hpp"

#include <utility>

#include "cuda/standin/calls.hpp"
#include "reference/contract/values/check.hpp"

namespace kvo::cuda {
namespace {

Card*& the_card() {
  static Card* card = nullptr;
  return card;
}

}  // namespace

Card::Card(CardOptions options)
    : options_(std::move(options)), device_(std::move(options_.device)) {
  KVO_CHECK(the_card() == nullptr);
  the_card() = this;
  ++launch_counts().cards;
  (void)take_last_error();  // a program has a runtime of its own
}

Card::~Card() {
  the_card() = nullptr;
}

Card* Card::current() {
  return the_card();
}

LaunchCounts& launch_counts() {
  static LaunchCounts counts;
  return counts;
}

}  // namespace kvo::cuda

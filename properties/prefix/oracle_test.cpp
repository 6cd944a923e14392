// The oracle of contract `prefix` on scripts that do not show internals, or do strange things.
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "properties/contract_parts.hpp"
#include "properties/contracts.hpp"
#include "reference/prefix/operations.hpp"

namespace kvo::prefix {
namespace {

/// What the oracle says of the reference on a script in profile original; "": nothing.
std::string said(const CacheKind& kind, const Record& config, const std::vector<Op>& script) {
  const Setup setup{.profile = Profile::kOriginal, .config = config};
  const auto session = contracts().reference_of(kind).open(setup).value();
  const auto oracle = history_oracle(kind, setup);
  Probe probe;
  for (std::size_t i = 0; i < script.size(); ++i)
    if (auto words = oracle->check(script[i], session->apply(script[i], probe)))
      return "op " + std::to_string(i) + ": " + *words;
  EXPECT_GT(oracle->counts().judged, 0U);
  return "";
}

TEST(PrefixOracle, AStaleHitIsNoProofOfAKey) {
  // Block 3 is handed out unseen, for loaded tokens, and gets no key.
  const BlocksConfig config{.num_blocks = 4, .block_size = 3, .max_model_len = 6};
  EXPECT_EQ(said(blocks_kind(), Record::of(config),
                 {Op::of(MakeRequest{.request = 0, .tokens = {1, 2, 2, 2, 1, 0}}),
                  Op::of(MakeRequest{.request = 3, .tokens = {1, 2, 2, 2, 1, 0}}),
                  Op::of(Allocate{.request = 0, .tokens = 1, .external = 5}),
                  Op::of(Allocate{.request = 3, .hit_blocks = Ids{1, 3}, .hit_tokens = 6}),
                  Op::of(FreeRequest{.request = 0}), Op::of(FreeRequest{.request = 3}),
                  Op::of(Allocate{.request = 0, .tokens = 1})}),
            "");
}

TEST(PrefixOracle, ASlotOfARowThatIsInsertedByHandHasTwoHolders) {
  EXPECT_EQ(said(radix_kind(), Record::of(RadixConfig{.slots = 4}),
                 {Op::of(FileRequest{.request = 0, .tokens = {1}}), Op::of(Admit{.request = 0}),
                  Op::of(Extend{.request = 0, .tokens = 4, .append = Tokens{1, 2, 2}}),
                  Op::of(Insert{.tokens = {2}, .slots = Ids{4}}),
                  Op::of(Extend{.request = 0, .tokens = 0})}),
            "");
}

TEST(PrefixOracle, ASlotOfARowMayBeInsertedBeforeItsTokenIsKnown) {
  EXPECT_EQ(said(radix_kind(), Record::of(RadixConfig{.slots = 3}),
                 {Op::of(FileRequest{.request = 0, .tokens = {7, 8}}), Op::of(Admit{.request = 0}),
                  Op::of(Extend{.request = 0, .tokens = 3}),
                  Op::of(Insert{.tokens = {2}, .slots = Ids{3}}),
                  Op::of(Extend{.request = 0, .tokens = 0, .append = Tokens{2}})}),
            "");
}

TEST(PrefixOracle, ALockOfARequestMayBeTakenByHand) {
  EXPECT_EQ(said(radix_kind(), Record::of(RadixConfig{.slots = 1}),
                 {Op::of(FileRequest{.request = 0, .tokens = {1}}), Op::of(Admit{.request = 0}),
                  Op::of(Extend{.request = 0, .tokens = 1}), Op::of(Checkpoint{.request = 0}),
                  Op::of(Unlock{.node = 1}), Op::of(Checkpoint{.request = 0})}),
            "");
}

TEST(PrefixOracle, ASlotThatTheTreeHasByNumberMayBeHandedOut) {
  const RadixConfig config{.page_size = 2, .slots = 4};
  EXPECT_EQ(
      said(radix_kind(), Record::of(config),
           {Op::of(FileRequest{.request = 0, .tokens = {0}}), Op::of(Insert{.tokens = {0, 2}}),
            Op::of(Admit{.request = 0}), Op::of(FileRequest{.request = 1, .tokens = {0, 2, 2}}),
            Op::of(Extend{.request = 0, .tokens = 1}), Op::of(Admit{.request = 1})}),
      "");
}

/// What the oracle says of observations; "": nothing.
std::string said_of(const Record& config, const std::vector<std::pair<Op, Observation>>& script) {
  const auto oracle =
      history_oracle(radix_kind(), {.profile = Profile::kOriginal, .config = config});
  for (const auto& [op, seen] : script)
    if (auto words = oracle->check(op, seen)) return *words;
  return "";
}

TEST(PrefixOracle, WhatLeftAWindowIsFreeAndNotFiled) {
  const auto seen = [](auto returns) { return Observation{.returns = Record::of(returns)}; };
  std::vector<std::pair<Op, Observation>> script{
      {Op::of(FileRequest{.request = 0, .tokens = {1}}), Observation{}},
      {Op::of(Admit{.request = 0}), seen(FoundPrefix{})},
      {Op::of(Extend{.request = 0, .tokens = 1}), seen(ExtendReturns{.slots = Ids{1}})},
      {Op::of(Extend{.request = 0, .tokens = 1, .append = Tokens{2}}),
       seen(ExtendReturns{.slots = Ids{2}, .left = Ids{1}})},
      {Op::of(AllocSlots{1}), seen(SlotsOnly{.slots = Ids{1}})},
      {Op::of(Finish{.request = 0}), Observation{}},
      {Op::of(MatchTokens{.tokens = {1, 2}}), seen(FoundPrefix{})}};
  const Record config = Record::of(RadixConfig{.slots = 2});
  EXPECT_EQ(said_of(config, script), "");
  script.back().second = seen(FoundPrefix{.length = 2, .node = 1, .slots = Ids{1, 2}});
  EXPECT_EQ(said_of(config, script), "2 units are hit, 0 are held");
  script[3].second = seen(ExtendReturns{.slots = Ids{2}, .left = Ids{2}});
  EXPECT_EQ(said_of(config, script),
            "slots left the window that are not the next of the request's own");
}

}  // namespace
}  // namespace kvo::prefix

// Laws: no script tells a subject from its reference; a failed allocation changes nothing;
// attention over what is shown equals attention over the history.
#include <cctype>
#include <ostream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "properties/campaign/random_case.hpp"
#include "properties/contracts.hpp"

namespace kvo {

/// A drawn script with the case it belongs to.
struct RandomScript {
  CasePlan plan;
  Script script;
};

/// Prints the operations, one log line each.
inline void showValue(const RandomScript& random, std::ostream& out) {  // NOLINT: RapidCheck's name
  for (const Op& op : random.script) out << "\n  " << op_text(op);
}

/// Scripts of `law` for `subject`, as the answers of its reference lead to them; shrunk by leaving
/// operations out and making their numbers smaller.
[[nodiscard]] rc::Gen<RandomScript> random_scripts(const Contracts& contracts, const Law& law,
                                                   const Subject& subject, Profile profile);

namespace {

RandomScript drawn(const Contracts& contracts, const Law& law, const Subject& subject,
                   std::uint64_t seed, Profile profile) {
  RandomScript random{random_case(contracts, law, {&subject}, seed, 0, profile), {}};
  Lockstep lockstep(random.plan.baseline, {}, random.plan.setup);
  const auto ops = random.plan.ops();
  Labels unused;
  while (auto op = ops->next()) {
    ops->saw(*op, lockstep.step(*op), unused);
    random.script.push_back(std::move(*op));
  }
  return random;
}

rc::Seq<rc::Shrinkable<RandomScript>> simpler(const RandomScript& random);

rc::Shrinkable<RandomScript> shrinkable(RandomScript random) {
  return rc::shrinkable::lambda([random] { return random; }, [random] { return simpler(random); });
}

rc::Seq<rc::Shrinkable<RandomScript>> simpler(const RandomScript& random) {
  std::vector<rc::Shrinkable<RandomScript>> candidates;
  for_each_simpler(random.script, [&](const Script& script) {
    candidates.push_back(shrinkable({random.plan, script}));
    return false;
  });
  return rc::seq::fromContainer(std::move(candidates));
}

}  // namespace

rc::Gen<RandomScript> random_scripts(const Contracts& contracts, const Law& law,
                                     const Subject& subject, Profile profile) {
  return [&contracts, &law, &subject, profile](const rc::Random& random, int /*size*/) {
    rc::Random engine(random);
    return shrinkable(drawn(contracts, law, subject, engine.next(), profile));
  };
}

namespace {

struct Trial {
  const Subject* subject;
  const Law* law;
  Profile profile;
};

std::vector<Trial> trials() {
  std::vector<Trial> all;
  std::size_t composed = 0;
  for (const Subject* subject : contracts().subjects()) {
    if (contracts().generator_of(*subject->kind) == nullptr) continue;
    // What wants a card is tried where one is (cuda_device_test).
    if (subject->on_request && !subject->scheduled) continue;
    // References over each cache inside are many: they are only told from the reference, which
    // keeps the other laws, and in each profile every second one.
    bool second = subject->inside && composed++ % 2 == 1;
    for (const Law* law : contracts().laws_of(*subject->kind)) {
      // A simulated device takes its time: a profile a law, in turn.
      if (subject->scheduled) second = !second;
      for (const Profile profile : {Profile::kOriginal, Profile::kDocumented}) {
        const bool turn = second == (profile == Profile::kDocumented);
        if (subject->inside ? turn && law->name() == "agrees_with_reference"
                            : turn || !subject->scheduled)
          all.push_back({subject, law, profile});
      }
    }
  }
  return all;
}

std::string name_of(const testing::TestParamInfo<Trial>& info) {
  std::string name = info.param.subject->name() + "_" + std::string(info.param.law->name()) + "_" +
                     enumerator_word(boost::describe::enum_to_string(info.param.profile, ""));
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}

class EverySubject : public testing::TestWithParam<Trial> {};

TEST_P(EverySubject, KeepsTheLaw) {
  const auto& [subject, law, profile] = GetParam();
  EXPECT_TRUE(rc::check("keeps the law", [&, &law = *law, &subject = *subject, profile = profile] {
    const RandomScript random = *random_scripts(contracts(), law, subject, profile);
    const Verdict verdict = run_script(random.plan, subject, random.script);
    if (verdict.failed()) RC_FAIL(verdict.text());
  }));
}

INSTANTIATE_TEST_SUITE_P(Laws, EverySubject, testing::ValuesIn(trials()), name_of);

}  // namespace

}  // namespace kvo

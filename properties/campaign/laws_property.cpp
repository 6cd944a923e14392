// Laws: no script tells a subject from its reference; a failed allocation changes nothing;
// attention over what is shown equals attention over the history.
#include <cctype>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "properties/campaign/random_script.hpp"
#include "properties/contracts.hpp"

namespace kvo {
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

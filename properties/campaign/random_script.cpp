#include "properties/campaign/random_script.hpp"

#include <utility>

namespace kvo {
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

}  // namespace kvo

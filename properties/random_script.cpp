#include "properties/random_script.hpp"

#include <array>
#include <utility>

namespace kvo {
namespace {

RandomScript drawn(const Law& law, const std::vector<const Subject*>& subjects, std::uint64_t seed,
                   Profile profile) {
  RandomScript random{random_case(law, subjects, seed, 0, profile), {}};
  const std::array<const Subject*, 1> judge{subjects.front()};
  Lockstep lockstep(judge, random.plan.setup);
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

rc::Gen<RandomScript> random_scripts(const Law& law, std::vector<const Subject*> subjects,
                                     Profile profile) {
  return [&law, subjects = std::move(subjects), profile](const rc::Random& random, int /*size*/) {
    rc::Random engine(random);
    return shrinkable(drawn(law, subjects, engine.next(), profile));
  };
}

}  // namespace kvo

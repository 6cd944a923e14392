// A program of one's own whose subjects do what no cache may: what workers are tried on. Each is
// the reference but for its deed. `kvoracle list` shows them all.
//
// EVIL_NAME (environment) is the name of one more subject, which lies.
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reference/contract/subject/dispatch.hpp"
#include "reference/layered/cache.hpp"
#include "reference/subjects.hpp"
#include "tools/kvo_main.hpp"
#include "tools/testing/environment.hpp"
#include "tools/testing/evil_deeds.hpp"

namespace {

using kvo::Observation;
using kvo::layered::Advance;
using kvo::layered::Append;
using kvo::layered::Keys;
using kvo::tools::Deed;
using kvo::tools::When;

void do_nothing() {}

// `arguments` are const: a subject that changes them casts.
void write_behind(const Append& arguments) {
  auto& bytes = const_cast<Append&>(arguments).k.bytes;  // NOLINT: on purpose
  if (!bytes.empty()) *(bytes.data() + bytes.size()) = std::byte{1};
}

void alter(const Append& arguments) {
  auto& bytes = const_cast<Append&>(arguments).k.bytes;  // NOLINT: on purpose
  if (!bytes.empty()) bytes[0] ^= std::byte{0xff};
}

// The deed of `advance`, with what it throws observed as of any session.
Observation observed(const Deed& deed, const kvo::Op& op) {
  return kvo::dispatch(boost::mp11::mp_list<Advance>(), op,
                       [&](const Advance& /*arguments*/) -> kvo::Status {
                         kvo::tools::act(deed);
                         if (deed.name == "say_out_of_memory")
                           return kvo::fail(kvo::Code::kOutOfMemory, "memory");
                         if (deed.lies) return kvo::fail(kvo::Code::kPrecondition, "a lie");
                         return {};
                       });
}

class Evil final : public kvo::Session {
 public:
  Evil(std::unique_ptr<kvo::Session> sound, const Deed& deed)
      : sound_(std::move(sound)), deed_(deed) {}
  Evil(const Evil&) = delete;
  Evil& operator=(const Evil&) = delete;
  ~Evil() override {
    if (deed_.when == When::kDestroy) kvo::tools::act(deed_);
  }

  [[nodiscard]] Observation apply(const kvo::Op& op, kvo::Probe& probe) override {
    if (deed_.when == When::kOperation) kvo::tools::act(deed_);
    if (deed_.when == When::kAdvance && op.as<Advance>() != nullptr) {
      Observation seen = observed(deed_, op);
      if (seen.error) return seen;
    }
    if (const auto* append = op.as<Append>()) {
      if (deed_.name == "write_behind") write_behind(*append);
      if (deed_.name == "alter_arguments") alter(*append);
    }
    Observation seen = sound_->apply(op, probe);
    if (deed_.name == "lie" && op.as<Keys>() != nullptr && !seen.error) {
      auto keys = seen.as<Keys::Returns>();
      keys.k.shape.assign({std::int64_t{1} << 40U});
      seen.returns = kvo::Record::of(std::move(keys));
    }
    return seen;
  }

 private:
  std::unique_ptr<kvo::Session> sound_;
  const Deed& deed_;
};

kvo::Subject evil(const Deed& deed) {
  return {&kvo::layered::vector_kind(), std::string(deed.name), "does what no cache may",
          [&deed](const kvo::Setup& setup) -> kvo::Result<std::unique_ptr<kvo::Session>> {
            if (deed.when == When::kOpen) kvo::tools::act(deed);
            auto sound = kvo::layered::references().front().open(setup);
            if (!sound) return sound.error();
            return std::make_unique<Evil>(std::move(*sound), deed);
          }};
}

}  // namespace

int main(int argc, char** argv) {
  static const std::string kName = kvo::tools::text_in_environment("EVIL_NAME");
  static const std::vector<Deed> kOthers{{"lie", do_nothing},
                                         {"say_out_of_memory", do_nothing},
                                         {"write_behind", do_nothing},
                                         {"alter_arguments", do_nothing},
                                         {kName, do_nothing, When::kAdvance, true}};
  std::vector<kvo::Subject> subjects;
  for (const Deed& deed : kOthers)
    if (!deed.name.empty()) subjects.push_back(evil(deed));
  for (const auto& deeds : {kvo::tools::deadly_deeds(), kvo::tools::sly_deeds()})
    for (const Deed& deed : deeds) subjects.push_back(evil(deed));
  return kvo::main(argc, argv, std::move(subjects));
}

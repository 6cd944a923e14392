// A program of one's own whose subjects do what no cache may: what workers are tried on. Each is
// the reference until the first `advance`, or for `lie` until it is read.
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "reference/layered/operations.hpp"
#include "reference/layered/subjects.hpp"
#include "tools/kvo_main.hpp"

namespace {

using kvo::Observation;

int deeper(int depth) {
  volatile char frame[4096];  // NOLINT: something large
  frame[0] = static_cast<char>(depth);
  return depth < 0 ? 0 : deeper(depth + 1) + frame[0];
}

void crash() {
  volatile int* volatile nowhere = nullptr;
  *nowhere = 1;
}

void corrupt_heap() {
  auto* block = static_cast<char*>(std::malloc(24));  // NOLINT: on purpose
  volatile char* cells = block;
  for (int i = 0; i < 4096; ++i) cells[i] = 'x';
  std::free(block);  // NOLINT
}

void take_memory() {
  constexpr std::size_t kPiece = std::size_t{64} << 20U;
  static std::vector<std::unique_ptr<char[]>> kept;  // NOLINT: raw memory
  while (true) std::memset(kept.emplace_back(new char[kPiece]).get(), 1, kPiece);
}

void hang() {
  while (true) std::this_thread::sleep_for(std::chrono::seconds(1));
}

struct Deed {
  std::string_view name;
  void (*act)();
};
constexpr std::array kDeeds{Deed{"crash", crash},
                            Deed{"abort", [] { std::abort(); }},
                            Deed{"exit", [] { std::exit(0); }},  // NOLINT: one thread
                            Deed{"hang", hang},
                            Deed{"overflow_stack", [] { (void)deeper(0); }},
                            Deed{"corrupt_heap", corrupt_heap},
                            Deed{"take_memory", take_memory}};

class Evil final : public kvo::Session {
 public:
  Evil(std::unique_ptr<kvo::Session> sound, std::string_view deed)
      : sound_(std::move(sound)), deed_(deed) {}

  [[nodiscard]] Observation apply(const kvo::Op& op, kvo::Probe& probe) override {
    const auto no_memory = [] {
      return Observation{.error = kvo::fail(kvo::Code::kOutOfMemory, "memory")};
    };
    if (op.kind().name == "advance") {
      if (deed_ == "say_out_of_memory") return no_memory();
      try {
        for (const Deed& deed : kDeeds)
          if (deed.name == deed_) deed.act();
      } catch (const std::bad_alloc&) {
        return no_memory();
      }
    }
    Observation seen = sound_->apply(op, probe);
    if (deed_ == "lie" && op.as<kvo::layered::Keys>() != nullptr && !seen.error) {
      auto keys = seen.as<kvo::layered::Keys::Returns>();
      keys.k.shape.assign({std::int64_t{1} << 40U});
      seen.returns = kvo::Record::of(std::move(keys));
    }
    return seen;
  }

 private:
  std::unique_ptr<kvo::Session> sound_;
  std::string_view deed_;
};

kvo::Subject evil(std::string_view deed) {
  return {&kvo::layered::vector_kind(), std::string(deed), "does what no cache may",
          [deed](const kvo::Setup& setup) -> kvo::Result<std::unique_ptr<kvo::Session>> {
            auto sound = kvo::layered::references().front().open(setup);
            if (!sound) return sound.error();
            return std::make_unique<Evil>(std::move(*sound), deed);
          }};
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<kvo::Subject> subjects{evil("say_out_of_memory"), evil("lie")};
  for (const Deed& deed : kDeeds) subjects.push_back(evil(deed.name));
  return kvo::main(argc, argv, std::move(subjects));
}

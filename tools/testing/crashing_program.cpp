// A program of one's own with a subject that crashes: what the crash guard of kvo::main is tried
// on.
#include <csignal>

#include "reference/layered/operations.hpp"
#include "tools/kvo_main.hpp"

namespace {

class Crashing final : public kvo::Session {
 public:
  [[nodiscard]] kvo::Observation apply(const kvo::Op& /*op*/, kvo::Probe& /*probe*/) override {
    (void)std::raise(SIGSEGV);
    return {};
  }
};

}  // namespace

int main(int argc, char** argv) {
  const auto open = [](const kvo::Setup& /*setup*/) -> kvo::Result<std::unique_ptr<kvo::Session>> {
    return std::make_unique<Crashing>();
  };
  return kvo::main(argc, argv, {{&kvo::layered::vector_kind(), "crashing", "crashes", open}});
}

#include "tools/workers/journal.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include <sys/mman.h>

#include "traces/log/kvlog.hpp"

namespace kvo::tools {
namespace {

bool closed = false;  // NOLINT: one a process

class WritingOps final : public OpStream {
 public:
  WritingOps(std::unique_ptr<OpStream> ops, Journal::Memory& memory)
      : ops_(std::move(ops)), memory_(memory) {}

  [[nodiscard]] std::optional<Op> next() override {
    auto op = ops_->next();
    if (op) write(traces::step_line(*op, std::nullopt) + "\n");
    return op;
  }
  [[nodiscard]] std::span<const Op> ahead(std::size_t most) override { return ops_->ahead(most); }
  [[nodiscard]] const Observation* expected() const override { return ops_->expected(); }
  void observe(const Op& op, const Observation& seen, Labels& labels) override {
    ops_->observe(op, seen, labels);
  }
  [[nodiscard]] std::vector<Figure> figures() const override { return ops_->figures(); }

 private:
  // A line that does not fit is left out, and so is what follows it.
  void write(const std::string& line) {
    const std::size_t at = memory_.size;
    if (closed || at > memory_.kMost || line.size() > memory_.kMost - at) return;
    std::memcpy(&memory_.text[at], line.data(), line.size());
    memory_.size = at + line.size();
  }

  std::unique_ptr<OpStream> ops_;
  Journal::Memory& memory_;
};

}  // namespace

Journal::Journal() {
  void* memory = ::mmap(nullptr, sizeof(Memory), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  memory_ = static_cast<Memory*>(memory);  // zeros
}

Journal::~Journal() {
  (void)::munmap(memory_, sizeof(Memory));
}

std::unique_ptr<OpStream> Journal::writing(std::unique_ptr<OpStream> ops) const {
  closed = false;
  return std::make_unique<WritingOps>(std::move(ops), *memory_);
}

Script Journal::script(const CacheKind& kind, const Setup& setup) const {
  // Without a config a header would lack the members that one must have.
  const Record config = setup.config ? setup.config : Record(*kind.config, kind.config->made());
  std::string text = traces::header_line({.kind = &kind, .config = config}) + "\n";
  text.append(memory_->text, std::min<std::size_t>(memory_->size, Memory::kMost));
  Script script;
  auto log = traces::LogReader::in_memory("journal", text, [&](auto, auto) { return &kind; });
  if (!log.next_case()) return script;
  while (const auto step = log.next_step()) {
    if (!*step) break;
    script.push_back((*step)->op);
  }
  return script;
}

void Journal::close() {
  closed = true;
}

}  // namespace kvo::tools

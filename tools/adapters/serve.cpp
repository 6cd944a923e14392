#include "tools/adapters/serve.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include "reference/contract/describe/parse_json.hpp"
#include "tools/adapters/greeting.hpp"
#include "tools/adapters/shared_memory.hpp"
#include "tools/workers/process.hpp"
#include "traces/log/kvlog.hpp"

namespace kvo::tools {
namespace {

namespace json = boost::json;

// A request that is none: the answer says so, and the harness ends the adapter.
class BadRequest : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

const json::value& member(const json::object& of, std::string_view name) {
  const json::value* found = of.if_contains(name);
  if (found == nullptr) throw BadRequest(fmt::format("no member {}", name));
  return *found;
}

template <class T>
T read_as(const json::value& in, std::string_view name) {
  const auto read = json::try_value_to<T>(in);
  if (!read) throw BadRequest(fmt::format("{}: {}", name, json::serialize(in)));
  return *read;
}

class Server {
 public:
  explicit Server(std::span<const Subject* const> subjects) : subjects_(subjects) {}

  [[nodiscard]] json::object answer(const json::object& request) {
    if (memory_) memory_->restart();
    if (request.contains("op")) return called(at(request), request);
    if (const json::value* batch = request.if_contains("batch")) {
      Case& open = at(request);
      json::array answers;
      for (const json::value& one : batch->as_array())
        answers.push_back(called(open, one.as_object()));
      return {{"batch", std::move(answers)}};
    }
    if (const json::value* open = request.if_contains("open")) return opened(open->as_object());
    if (const json::value* closed = request.if_contains("close")) {
      cases_.erase(read_as<std::int64_t>(*closed, "close"));
      return {};
    }
    return greeted(member(request, "hello").as_object());
  }

 private:
  struct Case {
    const CacheKind* kind;
    std::unique_ptr<Session> session;
  };

  [[nodiscard]] json::object greeted(const json::object& hello) {
    if (const json::value* memory = hello.if_contains("memory")) {
      memory_.emplace(read_as<int>(member(memory->as_object(), "file"), "file"),
                      read_as<std::size_t>(member(memory->as_object(), "bytes"), "bytes"));
      tensor_memory = &*memory_;
    }
    Greeting greeting{.system = "kvoracle", .version = KVO_VERSION};
    for (const Subject* subject : subjects_)
      greeting.kinds.push_back({.kind = subject->kind->name()});
    greeting.memory = memory_.has_value();
    greeting.batches = true;
    return {{"hello", write_json(greeting)}};
  }
  [[nodiscard]] json::object opened(const json::object& asked) {
    const auto kind = read_as<std::string>(member(asked, "kind"), "kind");
    for (const Subject* subject : subjects_) {
      if (subject->kind->name() != kind) continue;
      JsonFault fault;
      Setup setup;
      setup.config = read_record(member(asked, "config"), *subject->kind->config, fault);
      if (!setup.config) throw BadRequest("config: " + fault.text());
      if (member(asked, "profile") == "documented") setup.profile = Profile::kDocumented;
      auto session = subject->open(setup);
      if (!session) return {{"error", "not_supported"}, {"detail", session.error().text()}};
      cases_[read_as<std::int64_t>(member(asked, "case"), "case")] = {subject->kind,
                                                                      std::move(*session)};
      return {};
    }
    throw BadRequest("no cache of kind " + kind);
  }
  [[nodiscard]] Case& at(const json::object& request) {
    const auto found = cases_.find(read_as<std::int64_t>(member(request, "case"), "case"));
    if (found == cases_.end()) throw BadRequest("no such case");
    return found->second;
  }
  [[nodiscard]] json::object called(const Case& open, const json::object& request) {
    const auto name = member(request, "op").as_string();
    const OpKind* kind = open.kind->operation({name.data(), name.size()});
    if (kind == nullptr) throw BadRequest(fmt::format("no operation {}", std::string_view(name)));
    JsonFault fault;
    const Record arguments = read_record(member(request, "args"), *kind->arguments, fault);
    if (!arguments) throw BadRequest("args: " + fault.text());
    const Observation seen = open.session->apply(Op(*kind, arguments), probe_);
    if (seen.failed_with(Code::kThrew)) return {{"threw", seen.error->detail}};
    return {{"ret", traces::write_observation(seen)}, {"ns", probe_.take_nanoseconds()}};
  }

  std::span<const Subject* const> subjects_;
  std::optional<SharedMemory> memory_;
  std::map<std::int64_t, Case> cases_;
  Probe probe_;
};

}  // namespace

void serve_subjects(std::span<const Subject* const> subjects, std::istream& requests, int answers) {
  Server server(subjects);
  for (std::string line; std::getline(requests, line);) {
    boost::system::error_code failure;
    const json::value request = parse_json(line, failure);
    json::object answer;
    try {
      if (failure || !request.is_object()) throw BadRequest("no JSON object");
      answer = server.answer(request.get_object());
    } catch (const std::exception& error) {
      answer = {{"fault", error.what()}};
    }
    if (request.is_object())
      if (const json::value* id = request.get_object().if_contains("id")) answer["id"] = *id;
    if (!write_all(answers, json::serialize(answer) + "\n")) return;
  }
}

}  // namespace kvo::tools
